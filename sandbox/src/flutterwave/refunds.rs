//! Refunds: `completed` immediately, which only means initiated; the disbursement follows later.

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
    http::{ApiError, ApiKey, ApiResult, Page, Params, Reply},
    merchant::TimerEvent,
    tokens::Instrument,
    transactions::{Status, Transaction},
};
use crate::{env::Env, money::major, provider::MerchantAccount};

const PER_PAGE: usize = 20;

pub(super) struct Refund {
    id: u64,
    /// Id of the transaction.
    transaction: u64,
    flw_ref: String,
    /// In minor units.
    amount: u64,
    status: &'static str,
    comment: Option<String>,
    wallet_id: u64,
    created_at: Timestamp,
}

/// Initiated, and not disbursed yet.
const INITIATED: &str = "completed";
const FAILED: &str = "failed";

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
        let now = env.clock.now();
        let id = env.next_id();
        let refund = Refund {
            id,
            transaction,
            flw_ref: format!("URF_{}_{}", now.0, id % 10_000_000),
            amount,
            status: INITIATED,
            comment,
            wallet_id: self.id + 1,
            created_at: now,
        };
        let data = self.initiated_json(&refund);
        self.refunds.insert(id, refund);
        self.schedule(env, TimerEvent::Refund(id));
        data
    }

    /// Completes or fails the disbursement.
    pub(super) fn finish_refund(&mut self, id: u64) {
        let Some(refund) = self.refunds.get_mut(&id) else { return };
        let Some(transaction) = self.transactions.get_mut(&refund.transaction) else { return };
        refund.status = match &transaction.instrument {
            Some(Instrument::Card(card)) if card.refunds_fail => FAILED,
            Some(Instrument::Card(_)) => "completed-mpgs",
            _ => "completed-bank-transfer",
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
    page: Option<usize>,
}

pub(super) async fn list(
    State(flutterwave): State<Flutterwave>,
    ApiKey(key): ApiKey,
    Query(query): Query<ListQuery>,
) -> ApiResult {
    let fits = |refund: &&Refund| {
        query.id.as_ref().is_none_or(|wanted| *wanted == refund.transaction.to_string())
            && query.status.as_ref().is_none_or(|wanted| wanted == refund.status)
            && query.flw_ref.as_ref().is_none_or(|wanted| *wanted == refund.flw_ref)
    };
    flutterwave.with_account(&key, |account, _| {
        let found = account.refunds.values().rev().filter(fits);
        let rows = found.map(|refund| account.refund_json(refund)).collect();
        Ok(Reply::page("Refunds fetched", rows, Page::numbered(query.page, PER_PAGE)))
    })
}
