//! Refunds: `completed` immediately, which only means initiated; the disbursement follows later.

use std::borrow::Cow;

use axum::{
    extract::{Path, Query, State},
    http::StatusCode,
};
use serde::Deserialize;
use serde_json::{Value, json};
use tollhouse_platform::clock::Timestamp;

use super::{
    Flutterwave,
    accounts::Account,
    http::{ApiError, ApiKey, ApiResult, Page, Params, Reply, is_within},
    merchant::TimerEvent,
    tokens::Instrument,
    transactions::{Status, Transaction},
};
use crate::{env::Env, listing::ListedLine, money::major, provider::MerchantAccount};

const PER_PAGE: usize = 20;

#[derive(Clone)]
pub(super) struct Refund {
    pub id: u64,
    /// Id of the transaction.
    pub transaction: u64,
    flw_ref: String,
    /// In minor units.
    pub amount: u64,
    status: &'static str,
    comment: Option<String>,
    wallet_id: u64,
    pub created_at: Timestamp,
}

/// Initiated, and not disbursed yet.
const INITIATED: &str = "completed";
const FAILED: &str = "failed";

impl Refund {
    pub(super) fn has_failed(&self) -> bool {
        self.status == FAILED
    }
}

/// Returns the status of a disbursed refund.
fn disbursed(transaction: &Transaction) -> &'static str {
    match &transaction.instrument {
        Some(Instrument::Card(_)) => "completed-mpgs",
        _ => "completed-bank-transfer",
    }
}

impl Account {
    fn refund(&mut self, env: &Env, id: &str, params: &Params) -> ApiResult {
        let transaction = id.parse().ok().and_then(|id: u64| self.transactions.get_mut(&id));
        let transaction = transaction.filter(|t| t.status != Status::NotAttempted);
        let transaction =
            transaction.ok_or_else(|| ApiError::transaction_not_found(StatusCode::NOT_FOUND))?;
        let amount = refundable(transaction, params.amount("amount")?)?;
        transaction.refund_reserved_minor += amount;
        let transaction = transaction.id;
        let data = self.begin_refund(env, transaction, amount, params.text("comments"));
        Ok(Reply::new("Transaction refund initiated", data))
    }

    /// Refunds an amount, or the rest, as the merchant can on the dashboard.
    pub(super) fn refund_on_dashboard(
        &mut self,
        env: &Env,
        tx_ref: &str,
        amount: Option<u64>,
    ) -> bool {
        let Some(transaction) = self.by_reference_mut(tx_ref) else { return false };
        let Ok(amount) = refundable(transaction, amount) else { return false };
        transaction.refund_reserved_minor += amount;
        let transaction = transaction.id;
        self.begin_refund(env, transaction, amount, None);
        true
    }

    /// Initiates a refund of a reserved amount.
    fn begin_refund(
        &mut self,
        env: &Env,
        transaction: u64,
        amount: u64,
        comment: Option<String>,
    ) -> Value {
        let refund = Refund { comment, ..self.new_refund(env, transaction, amount) };
        let (id, data) = (refund.id, self.initiated_json(&refund));
        self.refunds.insert(id, refund);
        self.schedule(env, TimerEvent::Refund(id));
        data
    }

    fn new_refund(&self, env: &Env, transaction: u64, amount: u64) -> Refund {
        let (now, id) = (env.clock.now(), env.next_id());
        Refund {
            id,
            transaction,
            flw_ref: format!("URF_{}_{}", now.0, id % 10_000_000),
            amount,
            status: INITIATED,
            comment: None,
            wallet_id: self.id + 1,
            created_at: now,
        }
    }

    /// Returns a new refund that only the lists have.
    pub(super) fn listed_refund(&self, env: &Env, line: &ListedLine) -> Option<Refund> {
        let transaction = self.by_reference(&line.reference)?;
        let refund = self.new_refund(env, transaction.id, line.amount_minor);
        Some(Refund { status: disbursed(transaction), ..refund })
    }

    /// Completes or fails the disbursement.
    pub(super) fn finish_refund(&mut self, id: u64) {
        let Some(refund) = self.refunds.get_mut(&id) else { return };
        let Some(transaction) = self.transactions.get_mut(&refund.transaction) else { return };
        refund.status = match &transaction.instrument {
            Some(Instrument::Card(card)) if card.refunds_fail => FAILED,
            _ => disbursed(transaction),
        };
        if refund.status == FAILED {
            transaction.refund_reserved_minor -= refund.amount;
        }
    }

    fn initiated_json(&self, refund: &Refund) -> Value {
        json!({
            "id": refund.id,
            "account_id": self.id,
            "tx_id": refund.transaction,
            "flw_ref": refund.flw_ref,
            "wallet_id": refund.wallet_id,
            "amount_refunded": major(refund.amount),
            "status": refund.status,
            "destination": "payment_source",
            "meta": { "source": "availablebalance" },
            "created_at": refund.created_at,
        })
    }

    /// A refund as shown later: with another name for the transaction, and with `meta` as a string.
    fn refund_json(&self, refund: &Refund) -> Value {
        let mut data = self.initiated_json(refund);
        data["transaction_id"] = json!(refund.transaction);
        data["comment"] = json!(refund.comment);
        data["settlement_id"] = json!("NEW");
        data["meta"] = json!(data["meta"].to_string());
        data
    }
}

/// Returns the requested amount, or the remaining amount of the transaction.
fn refundable(transaction: &Transaction, requested: Option<u64>) -> Result<u64, ApiError> {
    if transaction.status != Status::Successful {
        return Err(ApiError::invalid("Only a successful transaction can be refunded"));
    }
    let left = transaction.amount - transaction.refund_reserved_minor;
    if left == 0 {
        return Err(ApiError::invalid("Transaction has been refunded already"));
    }
    let amount = requested.unwrap_or(left);
    if amount > left {
        return Err(ApiError::invalid(
            "Refund amount is more than what is left of the transaction",
        ));
    }
    Ok(amount)
}

pub(super) async fn create(
    State(flutterwave): State<Flutterwave>,
    ApiKey(key): ApiKey,
    Path(id): Path<String>,
    params: Params,
) -> ApiResult {
    flutterwave.with_account(&key, |account, env| account.refund(env, &id, &params))
}

pub(super) async fn fetch(
    State(flutterwave): State<Flutterwave>,
    ApiKey(key): ApiKey,
    Path(id): Path<String>,
) -> ApiResult {
    flutterwave.with_account(&key, |account, _| {
        let refund = id.parse().ok().and_then(|id: u64| account.refunds.get(&id));
        let refund =
            refund.ok_or_else(|| ApiError::new(StatusCode::NOT_FOUND, "Refund not found"))?;
        Ok(Reply::new("Refund fetched", account.refund_json(refund)))
    })
}

#[derive(Deserialize)]
pub(super) struct ListQuery {
    /// Id of the transaction.
    id: Option<String>,
    status: Option<String>,
    flw_ref: Option<String>,
    /// First and last day: `YYYY-MM-DD`.
    from: Option<String>,
    to: Option<String>,
    page: Option<usize>,
}

/// Lists all refunds, or those of a transaction. The latter are as recorded, without the changes of
/// tests.
pub(super) async fn list(
    State(flutterwave): State<Flutterwave>,
    ApiKey(key): ApiKey,
    Query(query): Query<ListQuery>,
) -> ApiResult {
    let fits = |refund: &Refund| {
        query.id.as_ref().is_none_or(|wanted| *wanted == refund.transaction.to_string())
            && query.status.as_ref().is_none_or(|wanted| wanted == refund.status)
            && query.flw_ref.as_ref().is_none_or(|wanted| *wanted == refund.flw_ref)
            && is_within(refund.created_at, query.from.as_deref(), query.to.as_deref())
    };
    flutterwave.with_account(&key, |account, _| {
        let listed: Vec<Cow<'_, Refund>> = match &query.id {
            None => account.listed_refunds(),
            Some(_) => account.refunds.values().rev().map(Cow::Borrowed).collect(),
        };
        let found = listed.iter().filter(|refund| fits(refund));
        let rows = found.map(|refund| account.refund_json(refund)).collect();
        Ok(Reply::page("Refunds fetched", rows, Page::numbered(query.page, PER_PAGE)))
    })
}
