//! The lists of payments and refunds that a provider serves for reconciliation. Tests can make them
//! differ from verification, which always shows what was recorded.

use std::{borrow::Cow, cmp::Reverse, collections::HashMap, sync::Arc};

use axum::{
    Json, Router,
    extract::State,
    http::StatusCode,
    response::{IntoResponse, Response},
    routing::put,
};
use serde::Deserialize;
use serde_json::{Value, json};
use tollhouse_platform::clock::Timestamp;

use crate::{
    env::Env,
    fields,
    provider::{MerchantAccount, Provider},
    server::error_response,
};

/// The payer of payments that only the lists have.
pub(crate) const PAYER: &str = "payer@example.com";

/// A change of a payment or refund in the lists. The default is no change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct ListingChange {
    /// The lists omit it.
    #[serde(default)]
    pub hidden: bool,
    /// The listed amount.
    pub amount_minor: Option<u64>,
    /// The listed fees; without effect on a refund.
    pub fees_minor: Option<u64>,
}

/// The kind of a line that only the lists have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ListedKind {
    /// A successful payment that verification does not find.
    Payment,
    /// A completed refund that its payment does not show.
    Refund,
}

/// A line that only the lists have.
#[derive(Clone, Debug, Deserialize)]
pub struct ListedLine {
    pub kind: ListedKind,
    /// The merchant's reference of the payment: a new one, or that of the refunded payment.
    pub reference: String,
    pub amount_minor: u64,
    /// The provider's usual fees if absent; without effect on a refund.
    pub fees_minor: Option<u64>,
    pub currency: String,
}

/// A payment or refund that a provider lists.
pub(crate) trait Listed: Clone {
    /// The merchant's reference of a payment, or the id of a refund.
    fn name(&self) -> Cow<'_, str>;
    /// The time of creation, and a number that orders records of the same time.
    fn position(&self) -> (Timestamp, u64);
    /// Applies the amount and the fees of a change.
    fn apply(&mut self, change: &ListingChange);
}

/// The changes of one list, and the records that only it has.
pub(crate) struct Lines<T> {
    /// By the name of the record.
    changes: HashMap<String, ListingChange>,
    added: Vec<T>,
}

impl<T> Default for Lines<T> {
    fn default() -> Lines<T> {
        Lines { changes: HashMap::new(), added: Vec::new() }
    }
}

impl<T: Listed> Lines<T> {
    /// Replaces the change of a record.
    pub(crate) fn change(&mut self, name: &str, change: ListingChange) {
        self.changes.insert(name.to_owned(), change);
    }

    pub(crate) fn add(&mut self, record: T) {
        self.added.push(record);
    }

    /// Returns whether a record with this name was added.
    pub(crate) fn has_added(&self, name: &str) -> bool {
        self.added.iter().any(|record| record.name() == name)
    }

    /// Returns these and the added records as the list shows them, newest first.
    pub(crate) fn list<'a>(&'a self, recorded: impl IntoIterator<Item = &'a T>) -> Vec<Cow<'a, T>> {
        let all = recorded.into_iter().chain(&self.added);
        let mut listed: Vec<Cow<'a, T>> = all.filter_map(|record| self.listed(record)).collect();
        listed.sort_by_key(|record| Reverse(record.position()));
        listed
    }

    /// `None`: the list omits the record.
    fn listed<'a>(&self, record: &'a T) -> Option<Cow<'a, T>> {
        let Some(change) = self.changes.get(&*record.name()) else {
            return Some(Cow::Borrowed(record));
        };
        let mut changed = record.clone();
        changed.apply(change);
        (!change.hidden).then_some(Cow::Owned(changed))
    }
}

/// A merchant account whose lists tests can change.
pub(crate) trait ListingAccount: MerchantAccount {
    /// Changes a listed payment. Returns false if no payment has this reference.
    fn change_listing(&mut self, reference: &str, change: ListingChange) -> bool;
    /// Changes a listed refund. Returns false if none has this id.
    fn change_listed_refund(&mut self, id: &str, change: ListingChange) -> bool;
    /// Returns whether a payment has this reference, also if only the lists have it.
    fn has_payment(&self, reference: &str) -> bool;
    /// Returns the number, from [`Env::next_id`], of the newest payment.
    fn newest_payment(&self) -> Option<u64>;
    /// Adds a payment to the lists and returns its id.
    fn add_listed_payment(&mut self, env: &Env, line: &ListedLine) -> String;
    /// Adds a refund to the lists and returns its id; `None` if its payment does not exist.
    fn add_listed_refund(&mut self, env: &Env, line: &ListedLine) -> Option<String>;
}

impl<M: ListingAccount> Provider<M> {
    pub(crate) fn change_listing(&self, reference: &str, change: ListingChange) -> bool {
        self.apply_to_all(|account, _| account.change_listing(reference, change))
    }

    pub(crate) fn change_listed_refund(&self, id: &str, change: ListingChange) -> bool {
        self.apply_to_all(|account, _| account.change_listed_refund(id, change))
    }

    /// Adds a payment to the account with the newest one, a refund to the account of its payment.
    /// Returns its id; `None` if the reference of a payment is in use or there is no account, or if
    /// the payment of a refund does not exist.
    pub(crate) fn add_listed(&self, line: &ListedLine) -> Option<String> {
        self.with_accounts(|accounts, env| {
            if line.kind == ListedKind::Refund {
                let mut all = accounts.values_mut();
                return all.find_map(|account| account.add_listed_refund(env, line));
            }
            if accounts.values().any(|account| account.has_payment(&line.reference)) {
                return None;
            }
            let account = accounts.values_mut().max_by_key(|account| account.newest_payment());
            account.map(|account| account.add_listed_payment(env, line))
        })
    }
}

/// The controls of an account's lists.
pub(crate) fn controls<M: ListingAccount, S: Clone + Send + Sync + 'static>(
    provider: &Arc<Provider<M>>,
) -> Router<S> {
    Router::new()
        .route("/listing", put(change_payment::<M>).post(add_line::<M>))
        .route("/listing/refund", put(change_refund::<M>))
        .with_state(provider.clone())
}

#[derive(Deserialize)]
struct PaymentChange {
    reference: String,
    #[serde(flatten)]
    change: ListingChange,
}

/// Control endpoint of the simulators: changes a listed payment.
async fn change_payment<M: ListingAccount>(
    State(provider): State<Arc<Provider<M>>>,
    body: String,
) -> Response {
    let Ok(PaymentChange { reference, change }) = serde_json::from_str(&body) else {
        let wanted = "reference is required; hidden is a boolean; \
            amount_minor and fees_minor are numbers";
        return error_response(StatusCode::BAD_REQUEST, wanted);
    };
    match provider.change_listing(&reference, change) {
        true => StatusCode::NO_CONTENT.into_response(),
        false => error_response(StatusCode::NOT_FOUND, "no payment has this reference"),
    }
}

#[derive(Deserialize)]
struct RefundChange {
    /// A string or a number.
    id: Value,
    #[serde(flatten)]
    change: ListingChange,
}

/// Control endpoint of the simulators: changes a listed refund.
async fn change_refund<M: ListingAccount>(
    State(provider): State<Arc<Provider<M>>>,
    body: String,
) -> Response {
    let request = serde_json::from_str::<RefundChange>(&body).ok();
    let request = request.and_then(|request| Some((fields::text(&request.id)?, request.change)));
    let Some((id, change)) = request else {
        let wanted = "id is required; hidden is a boolean; amount_minor is a number";
        return error_response(StatusCode::BAD_REQUEST, wanted);
    };
    match provider.change_listed_refund(&id, change) {
        true => StatusCode::NO_CONTENT.into_response(),
        false => error_response(StatusCode::NOT_FOUND, "no refund has this id"),
    }
}

/// Control endpoint of the simulators: adds a line that only the lists have.
async fn add_line<M: ListingAccount>(
    State(provider): State<Arc<Provider<M>>>,
    body: String,
) -> Response {
    let Ok(line) = serde_json::from_str::<ListedLine>(&body) else {
        let wanted = "kind (payment or refund), reference, amount_minor and currency are required; \
            fees_minor is a number";
        return error_response(StatusCode::BAD_REQUEST, wanted);
    };
    match (provider.add_listed(&line), line.kind) {
        (Some(id), _) => Json(json!({ "id": id })).into_response(),
        (None, ListedKind::Refund) => {
            error_response(StatusCode::NOT_FOUND, "no payment has this reference")
        }
        (None, ListedKind::Payment) => {
            let reason = "a payment has this reference, or no account was used yet";
            error_response(StatusCode::CONFLICT, reason)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Debug, PartialEq, Eq)]
    struct Record(&'static str, i64, u64);

    impl Listed for Record {
        fn name(&self) -> Cow<'_, str> {
            self.0.into()
        }

        fn position(&self) -> (Timestamp, u64) {
            (Timestamp(self.1), 0)
        }

        fn apply(&mut self, change: &ListingChange) {
            self.2 = change.amount_minor.unwrap_or(self.2);
        }
    }

    fn listed(lines: &Lines<Record>, recorded: &[Record]) -> Vec<Record> {
        lines.list(recorded).into_iter().map(Cow::into_owned).collect()
    }

    #[test]
    fn a_list_has_changed_and_added_records_and_omits_hidden_ones() {
        let recorded = [Record("old", 1, 10), Record("gone", 2, 20), Record("new", 4, 40)];
        let mut lines = Lines::default();
        lines.change("old", ListingChange { amount_minor: Some(11), ..ListingChange::default() });
        lines.change("gone", ListingChange { hidden: true, ..ListingChange::default() });
        lines.add(Record("added", 3, 30));
        assert!(lines.has_added("added") && !lines.has_added("old"));
        let expected = [Record("new", 4, 40), Record("added", 3, 30), Record("old", 1, 11)];
        assert_eq!(listed(&lines, &recorded), expected);
        // A later change replaces the earlier one.
        lines.change("old", ListingChange::default());
        lines.change("gone", ListingChange::default());
        let [old, gone, new] = recorded.clone();
        assert_eq!(listed(&lines, &recorded), [new, Record("added", 3, 30), gone, old]);
    }
}
