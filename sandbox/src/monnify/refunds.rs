//! Refunds: in progress at first, ended by the clock as the card decides. Why one is refused is told by codes.

use axum::{
    extract::{Path, State},
    http::StatusCode,
};
use serde_json::{Value, json};
use tollhouse_platform::clock::Timestamp;

use super::{
    Monnify,
    accounts::Account,
    cards::Returns,
    http::{Answer, Caller, Params, Refusal, Reply},
    merchant::Due,
    times::day_first,
    transactions::{Status, Transaction},
};
use crate::{env::Env, money::major, provider::Merchant};

/// In minor units.
const LEAST: u64 = 10_000;
const LONGEST_REASON: usize = 64;
const LONGEST_NOTE: usize = 16;

const IN_PROGRESS: &str = "IN_PROGRESS";
const COMPLETED: &str = "COMPLETED";
const FAILED: &str = "FAILED";

pub(super) struct Refund {
    /// The merchant's.
    reference: String,
    /// Payment reference of the transaction.
    transaction: String,
    transaction_reference: String,
    /// Minor units.
    amount: u64,
    full: bool,
    reason: String,
    note: String,
    status: &'static str,
    created_at: Timestamp,
    ended_at: Option<Timestamp>,
    /// What the card does with it.
    returns: Returns,
}

impl Account {
    fn refund(&mut self, env: &Env, params: &Params) -> Answer {
        let name = params.required("transactionReference")?;
        let reference = params.required("refundReference")?;
        let amount = params.required_amount("refundAmount")?;
        let reason = params.required("refundReason")?;
        let note = params.required("customerNote")?;
        if reason.chars().count() > LONGEST_REASON || note.chars().count() > LONGEST_NOTE {
            return Err(refused("R8"));
        }
        if self.refunds.contains_key(&reference) {
            return Err(refused("R9"));
        }
        let transaction = self.by_reference(&name).ok_or_else(|| refused("R1"))?;
        check(transaction, amount)?;
        check_destination(params)?;
        let returns = transaction.card.map_or(Returns::Completed, |card| card.returns);
        if returns == Returns::WalletShort {
            return Err(refused("R5"));
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
            returns,
        };
        if let Some(transaction) = self.by_reference_mut(&name) {
            transaction.refunding += amount;
        }
        let body = refund_json(&refund);
        self.refunds.insert(reference.clone(), refund);
        self.schedule(env, Due::Refund(reference));
        Ok(Reply(body))
    }

    /// The refund reaches the customer, or not.
    pub(super) fn finish_refund(&mut self, env: &Env, reference: &str) {
        let Some(refund) = self.refunds.get_mut(reference) else { return };
        let fails = refund.returns == Returns::Failed;
        refund.status = if fails { FAILED } else { COMPLETED };
        refund.ended_at = Some(env.clock.now());
        if let Some(transaction) = self.transactions.get_mut(&refund.transaction) {
            if fails {
                transaction.refunding -= refund.amount;
            } else {
                transaction.refunded += refund.amount;
            }
            if transaction.refunded >= transaction.paid {
                transaction.status = Status::Reversed;
            }
        }
        let event = if fails { "FAILED_REFUND" } else { "SUCCESSFUL_REFUND" };
        let (data, subject) = (notified_json(refund), refund.transaction.clone());
        self.notify(env, event, &subject, &data);
    }
}

fn check(transaction: &Transaction, amount: u64) -> Result<(), Refusal> {
    if !transaction.status.is_paid() {
        return Err(refused("R2"));
    }
    if amount < LEAST {
        return Err(refused("R4"));
    }
    if amount > transaction.paid {
        return Err(refused("R3"));
    }
    if transaction.refunding + amount > transaction.paid {
        return Err(refused("R12"));
    }
    Ok(())
}

/// Another account for the money is whole or not given.
fn check_destination(params: &Params) -> Result<(), Refusal> {
    let number = params.text("destinationAccountNumber");
    let bank = params.text("destinationAccountBankCode");
    let digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    match (number, bank) {
        (None, None) => Ok(()),
        (Some(number), Some(bank)) if number.len() == 10 && digits(&number) && digits(&bank) => {
            Ok(())
        }
        _ => Err(refused("R6")),
    }
}

fn refused(code: &'static str) -> Refusal {
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
    Refusal::new(status, code, message)
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
        // Empty, not null, until it has ended.
        "completedOn": refund.ended_at.map(day_first).unwrap_or_default(),
        "createdOn": day_first(refund.created_at),
    })
}

fn notified_json(refund: &Refund) -> Value {
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
    Caller(key): Caller,
    params: Params,
) -> Answer {
    monnify.account(&key, |account, env| account.refund(env, &params))
}

pub(super) async fn fetch(
    State(monnify): State<Monnify>,
    Caller(key): Caller,
    Path(reference): Path<String>,
) -> Answer {
    monnify.account(&key, |account, _| {
        let refund = account.refunds.get(&reference).ok_or_else(|| refused("R7"))?;
        Ok(Reply(refund_json(refund)))
    })
}
