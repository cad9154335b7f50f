//! Refunds: in progress at first, settled by the clock with the card's outcome. Refusals have
//! codes.

use std::borrow::Cow;

use axum::{
    extract::{Path, Query, State},
    http::StatusCode,
};
use serde::Deserialize;
use serde_json::{Value, json};
use tollhouse_platform::clock::Timestamp;

use super::{
    Monnify,
    accounts::Account,
    cards::RefundOutcome,
    http::{ApiError, ApiKey, ApiResult, Params, Reply, is_within},
    merchant::TimerEvent,
    times::day_first,
    transactions::{Status, Transaction},
};
use crate::{env::Env, listing::ListedLine, money::major, provider::MerchantAccount};

/// In minor units.
const MIN_AMOUNT_MINOR: u64 = 10_000;
const MAX_REASON_CHARS: usize = 64;
const MAX_NOTE_CHARS: usize = 16;

const IN_PROGRESS: &str = "IN_PROGRESS";
const COMPLETED: &str = "COMPLETED";
const FAILED: &str = "FAILED";

#[derive(Clone)]
pub(super) struct Refund {
    /// The merchant's reference.
    pub reference: String,
    /// Payment reference of the transaction.
    transaction: String,
    transaction_reference: String,
    /// In minor units.
    pub amount: u64,
    full: bool,
    reason: String,
    note: String,
    status: &'static str,
    pub created_at: Timestamp,
    ended_at: Option<Timestamp>,
    /// The outcome of refunds to the card.
    outcome: RefundOutcome,
}

impl Refund {
    /// A completed refund that only the lists have.
    pub(super) fn listed(env: &Env, transaction: &Transaction, line: &ListedLine) -> Refund {
        let now = env.clock.now();
        Refund {
            reference: format!("refund-{}", env.random.code(10)),
            transaction: transaction.payment_reference.clone(),
            transaction_reference: transaction.reference.clone(),
            amount: line.amount_minor,
            full: line.amount_minor == transaction.paid,
            reason: "Refund on the dashboard".to_owned(),
            note: "Refund".to_owned(),
            status: COMPLETED,
            created_at: now,
            ended_at: Some(now),
            outcome: RefundOutcome::Completed,
        }
    }
}

impl Account {
    fn refund(&mut self, env: &Env, params: &Params) -> ApiResult {
        let name = params.required("transactionReference")?;
        let reference = params.required("refundReference")?;
        let amount = params.required_amount("refundAmount")?;
        let reason = params.required("refundReason")?;
        let note = params.required("customerNote")?;
        if reason.chars().count() > MAX_REASON_CHARS || note.chars().count() > MAX_NOTE_CHARS {
            return Err(refund_error("R8"));
        }
        if self.refunds.contains_key(&reference) {
            return Err(refund_error("R9"));
        }
        let transaction = self.by_reference(&name).ok_or_else(|| refund_error("R1"))?;
        check_refundable(transaction, amount)?;
        check_destination(params)?;
        let returns = transaction.card.map_or(RefundOutcome::Completed, |card| card.refund_outcome);
        if returns == RefundOutcome::InsufficientBalance {
            return Err(refund_error("R5"));
        }
        let refund = Refund {
            reference: reference.clone(),
            transaction: transaction.payment_reference.clone(),
            transaction_reference: transaction.reference.clone(),
            amount,
            full: amount == transaction.paid,
            reason,
            note,
            status: IN_PROGRESS,
            created_at: env.clock.now(),
            ended_at: None,
            outcome: returns,
        };
        if let Some(transaction) = self.by_reference_mut(&name) {
            transaction.refund_reserved_minor += amount;
        }
        let body = refund_json(&refund);
        self.refunds.insert(reference.clone(), refund);
        self.schedule(env, TimerEvent::Refund(reference));
        Ok(Reply(body))
    }

    /// Completes or fails the refund.
    pub(super) fn finish_refund(&mut self, env: &Env, reference: &str) {
        let Some(refund) = self.refunds.get_mut(reference) else { return };
        let fails = refund.outcome == RefundOutcome::Failed;
        refund.status = if fails { FAILED } else { COMPLETED };
        refund.ended_at = Some(env.clock.now());
        if let Some(transaction) = self.transactions.get_mut(&refund.transaction) {
            if fails {
                transaction.refund_reserved_minor -= refund.amount;
            } else {
                transaction.refunded += refund.amount;
            }
            if transaction.refunded >= transaction.paid {
                transaction.status = Status::Reversed;
            }
        }
        let event = if fails { "FAILED_REFUND" } else { "SUCCESSFUL_REFUND" };
        let (data, subject) = (notification_json(refund), refund.transaction.clone());
        self.notify(env, event, &subject, &data);
    }
}

fn check_refundable(transaction: &Transaction, amount: u64) -> Result<(), ApiError> {
    if !transaction.status.is_paid() {
        return Err(refund_error("R2"));
    }
    if amount < MIN_AMOUNT_MINOR {
        return Err(refund_error("R4"));
    }
    if amount > transaction.paid {
        return Err(refund_error("R3"));
    }
    if transaction.refund_reserved_minor + amount > transaction.paid {
        return Err(refund_error("R12"));
    }
    Ok(())
}

/// Checks that a destination account is either complete or absent.
fn check_destination(params: &Params) -> Result<(), ApiError> {
    let number = params.text("destinationAccountNumber");
    let bank = params.text("destinationAccountBankCode");
    let digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    match (number, bank) {
        (None, None) => Ok(()),
        (Some(number), Some(bank)) if number.len() == 10 && digits(&number) && digits(&bank) => {
            Ok(())
        }
        _ => Err(refund_error("R6")),
    }
}

fn refund_error(code: &'static str) -> ApiError {
    let message = match code {
        "R1" => "The transaction does not exist",
        "R2" => "The transaction cannot be refunded",
        "R3" => "The refund is more than the transaction's amount",
        "R4" => "The refund is less than the least that can be refunded",
        "R5" => "The merchant's balance is too low for the refund",
        "R6" => "The destination account is invalid",
        "R7" => "There is no refund with this reference",
        "R8" => "A text is too long",
        "R9" => "The refund reference exists already",
        _ => "All refunds together are more than the transaction's amount",
    };
    let status = match code {
        "R1" | "R7" => StatusCode::NOT_FOUND,
        _ => StatusCode::BAD_REQUEST,
    };
    ApiError::new(status, code, message)
}

fn refund_json(refund: &Refund) -> Value {
    let comment = match refund.status {
        COMPLETED => "Refund was completed.",
        FAILED => "Refund could not be completed.",
        _ => "Transaction refund is in progress.",
    };
    json!({
        "refundReference": refund.reference,
        "transactionReference": refund.transaction_reference,
        "refundReason": refund.reason,
        "customerNote": refund.note,
        "refundAmount": major(refund.amount),
        "refundType": if refund.full { "FULL_REFUND" } else { "PARTIAL_REFUND" },
        "refundStatus": refund.status,
        "refundStrategy": "MERCHANT_WALLET",
        "comment": comment,
        // An empty string, not null, until it is settled.
        "completedOn": refund.ended_at.map(day_first).unwrap_or_default(),
        "createdOn": day_first(refund.created_at),
    })
}

fn notification_json(refund: &Refund) -> Value {
    json!({
        "merchantReason": refund.reason,
        "transactionReference": refund.transaction_reference,
        "completedOn": refund.ended_at.map(day_first),
        "refundStatus": refund.status,
        "customerNote": refund.note,
        "createdOn": day_first(refund.created_at),
        "refundReference": refund.reference,
        "refundAmount": major(refund.amount),
    })
}

pub(super) async fn create(
    State(monnify): State<Monnify>,
    ApiKey(key): ApiKey,
    params: Params,
) -> ApiResult {
    monnify.with_account(&key, |account, env| account.refund(env, &params))
}

pub(super) async fn fetch(
    State(monnify): State<Monnify>,
    ApiKey(key): ApiKey,
    Path(reference): Path<String>,
) -> ApiResult {
    monnify.with_account(&key, |account, _| {
        let refund = account.refunds.get(&reference).ok_or_else(|| refund_error("R7"))?;
        Ok(Reply(refund_json(refund)))
    })
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ListQuery {
    page: Option<usize>,
    size: Option<usize>,
    /// Milliseconds since 1970, both inclusive.
    from: Option<i64>,
    to: Option<i64>,
    transaction_reference: Option<String>,
    refund_status: Option<String>,
}

/// Lists all refunds, or those of a transaction. The latter are as recorded, without the changes of
/// tests.
pub(super) async fn list(
    State(monnify): State<Monnify>,
    ApiKey(key): ApiKey,
    Query(query): Query<ListQuery>,
) -> ApiResult {
    let fits = |refund: &Refund| {
        is_within(refund.created_at, query.from, query.to)
            && query.refund_status.as_ref().is_none_or(|wanted| wanted == refund.status)
    };
    monnify.with_account(&key, |account, _| {
        let listed: Vec<Cow<'_, Refund>> = match &query.transaction_reference {
            None => account.listed_refunds(),
            Some(wanted) => {
                let recorded = account.refunds.values();
                let own = recorded.filter(|refund| *wanted == refund.transaction_reference);
                own.map(Cow::Borrowed).collect()
            }
        };
        let found = listed.iter().filter(|refund| fits(refund));
        let rows = found.map(|refund| refund_json(refund)).collect();
        Ok(Reply::page(rows, [query.page, query.size]))
    })
}
