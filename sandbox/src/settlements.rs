//! Settlements: payouts of the listed payments less fees, refunds and lost disputes. Only tests
//! settle.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use axum::{
    Json, Router,
    extract::State,
    http::StatusCode,
    response::{IntoResponse, Response},
    routing::post,
};
use serde::Deserialize;
use serde_json::json;
use tollhouse_platform::clock::Timestamp;

use crate::{env::Env, listing::ListingAccount, provider::Provider, server::error_response};

/// A payment, a refund or a dispute, with a number from [`Env::next_id`].
#[derive(Clone, Debug)]
pub(crate) struct Movement {
    pub id: u64,
    pub currency: String,
    /// In minor units, like the fees.
    pub amount: u64,
    pub fees: u64,
}

/// The movements of an account's balance, including those in earlier settlements.
#[derive(Default)]
pub(crate) struct Movements {
    /// The listed payments that were successful.
    pub payments: Vec<Movement>,
    /// The listed refunds that did not fail.
    pub refunds: Vec<Movement>,
    /// The disputes that the merchant lost.
    pub disputes: Vec<Movement>,
}

/// Amounts are in minor units.
pub(crate) struct Settlement {
    pub id: u64,
    pub currency: String,
    /// The ids of its payments.
    pub payments: BTreeSet<u64>,
    /// The sum of its payments.
    pub gross: u64,
    /// The sum of their fees.
    pub fees: u64,
    /// The sum of the deducted refunds.
    pub refunds: u64,
    /// The sum of the deducted disputes.
    pub disputes: u64,
    /// The amount paid out.
    pub paid: u64,
    pub created_at: Timestamp,
    /// The ids of the deducted refunds and disputes.
    deducted: BTreeSet<u64>,
}

/// The settlements of an account.
#[derive(Default)]
pub(crate) struct Settlements(BTreeMap<u64, Settlement>);

impl Settlements {
    pub(crate) fn get(&self, id: &str) -> Option<&Settlement> {
        self.0.get(&id.parse().ok()?)
    }

    /// Returns all settlements, newest first.
    pub(crate) fn newest_first(&self) -> impl Iterator<Item = &Settlement> {
        self.0.values().rev()
    }

    /// Returns the oldest payment that no settlement has.
    fn oldest_unsettled<'a>(&self, movements: &'a Movements) -> Option<&'a Movement> {
        let unsettled = movements.payments.iter().filter(|payment| !self.has(payment.id));
        unsettled.min_by_key(|payment| payment.id)
    }

    /// Returns whether a settlement pays out or deducts this movement.
    fn has(&self, id: u64) -> bool {
        self.0.values().any(|s| s.payments.contains(&id) || s.deducted.contains(&id))
    }

    /// Settles all unsettled payments in the currency of the oldest one. Returns the id of the
    /// settlement; `None` if there is no unsettled payment.
    ///
    /// Deductions that exceed what is left of the payments remain for a later settlement.
    fn settle(&mut self, env: &Env, movements: &Movements, paid_minor: Option<u64>) -> Option<u64> {
        let currency = self.oldest_unsettled(movements)?.currency.clone();
        let is_open =
            |movement: &&Movement| movement.currency == currency && !self.has(movement.id);
        let payments: Vec<&Movement> = movements.payments.iter().filter(is_open).collect();
        let gross = sum(payments.iter().map(|payment| payment.amount));
        let fees = sum(payments.iter().map(|payment| payment.fees));
        let mut left = gross.saturating_sub(fees);
        let mut deducted = BTreeSet::new();
        let mut deduct = |movements: &[Movement]| {
            let mut open: Vec<&Movement> = movements.iter().filter(is_open).collect();
            open.sort_by_key(|movement| movement.id);
            let before = left;
            for movement in open {
                if let Some(rest) = left.checked_sub(movement.amount) {
                    left = rest;
                    deducted.insert(movement.id);
                }
            }
            before - left
        };
        let (refunds, disputes) = (deduct(&movements.refunds), deduct(&movements.disputes));
        let settlement = Settlement {
            id: env.next_id(),
            payments: payments.iter().map(|payment| payment.id).collect(),
            gross,
            fees,
            refunds,
            disputes,
            paid: paid_minor.unwrap_or(left),
            created_at: env.clock.now(),
            deducted,
            currency,
        };
        let id = settlement.id;
        self.0.insert(id, settlement);
        Some(id)
    }
}

fn sum(amounts: impl Iterator<Item = u64>) -> u64 {
    amounts.fold(0, u64::saturating_add)
}

/// A merchant account that the provider settles.
pub(crate) trait SettlingAccount: ListingAccount {
    fn movements(&self) -> Movements;
    fn settlements(&mut self) -> &mut Settlements;
}

impl<M: SettlingAccount> Provider<M> {
    /// Settles the account of the oldest unsettled payment, like [`Settlements::settle`].
    pub(crate) fn settle(&self, paid_minor: Option<u64>) -> Option<String> {
        self.with_accounts(|accounts, env| {
            let unsettled = accounts.values_mut().filter_map(|account| {
                let movements = account.movements();
                let oldest = account.settlements().oldest_unsettled(&movements)?.id;
                Some((oldest, account, movements))
            });
            let (_, account, movements) = unsettled.min_by_key(|(oldest, ..)| *oldest)?;
            let id = account.settlements().settle(env, &movements, paid_minor)?;
            Some(id.to_string())
        })
    }
}

/// The control that settles.
pub(crate) fn control<M: SettlingAccount, S: Clone + Send + Sync + 'static>(
    provider: &Arc<Provider<M>>,
) -> Router<S> {
    Router::new().route("/settle", post(settle::<M>)).with_state(provider.clone())
}

#[derive(Default, Deserialize)]
struct SettleRequest {
    paid_minor: Option<u64>,
}

/// Control endpoint of the simulators: settles all unsettled payments.
async fn settle<M: SettlingAccount>(
    State(provider): State<Arc<Provider<M>>>,
    body: String,
) -> Response {
    let request = match body.trim() {
        "" => Ok(SettleRequest::default()),
        body => serde_json::from_str(body),
    };
    let Ok(SettleRequest { paid_minor }) = request else {
        return error_response(StatusCode::BAD_REQUEST, "paid_minor is a number");
    };
    match provider.settle(paid_minor) {
        Some(id) => Json(json!({ "id": id })).into_response(),
        None => error_response(StatusCode::BAD_REQUEST, "no successful payment is unsettled"),
    }
}

#[cfg(test)]
mod tests {
    use tollhouse_platform::clock::Clock;

    use super::*;

    fn env() -> Env {
        Env::new(String::new(), Clock::frozen_at(Timestamp(0)), 7)
    }

    fn movement(id: u64, currency: &str, amount: u64, fees: u64) -> Movement {
        Movement { id, currency: currency.to_owned(), amount, fees }
    }

    #[test]
    fn a_settlement_has_the_unsettled_payments_of_one_currency() {
        let (env, mut settlements) = (env(), Settlements::default());
        let mut movements = Movements {
            payments: vec![movement(2, "USD", 50, 5), movement(1, "NGN", 100, 10)],
            ..Movements::default()
        };
        let first = settlements.settle(&env, &movements, None).unwrap();
        movements.payments.push(movement(3, "NGN", 300, 30));
        let second = settlements.settle(&env, &movements, Some(1)).unwrap();
        let third = settlements.settle(&env, &movements, None).unwrap();
        assert_eq!(settlements.settle(&env, &movements, None), None);
        let newest_first: Vec<_> = settlements
            .newest_first()
            .map(|s| (s.id, s.currency.as_str(), s.gross, s.fees, s.paid))
            .collect();
        let expected =
            [(third, "NGN", 300, 30, 270), (second, "USD", 50, 5, 1), (first, "NGN", 100, 10, 90)];
        assert_eq!(newest_first, expected);
        assert_eq!(settlements.get(&first.to_string()).unwrap().payments, BTreeSet::from([1]));
        assert!(settlements.get("1").is_none() && settlements.get("x").is_none());
    }

    #[test]
    fn deductions_are_made_once_and_never_exceed_the_payments() {
        let (env, mut settlements) = (env(), Settlements::default());
        let mut movements = Movements {
            payments: vec![movement(1, "NGN", 100, 10)],
            refunds: vec![movement(2, "NGN", 40, 0), movement(3, "USD", 1, 0)],
            disputes: vec![movement(4, "NGN", 60, 0), movement(5, "NGN", 50, 0)],
        };
        let first = settlements.settle(&env, &movements, None).unwrap();
        let amounts = |s: &Settlement| (s.gross, s.fees, s.refunds, s.disputes, s.paid);
        assert_eq!(amounts(&settlements.0[&first]), (100, 10, 40, 50, 0));
        movements.payments.push(movement(6, "NGN", 200, 0));
        let second = settlements.settle(&env, &movements, None).unwrap();
        assert_eq!(amounts(&settlements.0[&second]), (200, 0, 0, 60, 140));
        assert_eq!(settlements.settle(&env, &movements, None), None);
    }
}
