//! Refunds. A refund is identified by the host's refund reference, so `start` looks it up before it
//! requests it: a retry after a lost response finds the first attempt.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tollhouse_plugin::amount::Major;
use tollhouse_plugin::partial_refunds::{self, PartialRefund, PartialRefundOrder};
use tollhouse_plugin::raw_json::RawJson;
use tollhouse_plugin::refunds::{self, Refund, RefundOrder, RefundStatus};
use tollhouse_plugin::types::{Fault, FaultCategory};
use tollhouse_plugin::{http, log, loose, repeat, text};

use crate::transaction::{self, Transaction};
use crate::{Monnify, api, naira};

/// 100 naira.
const MIN_AMOUNT_MINOR: u64 = 10_000;
const MAX_REASON_CHARS: usize = 64;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct RefundRequest<'a> {
    transaction_reference: String,
    refund_reference: &'a str,
    refund_amount: Major,
    refund_reason: String,
    /// Text on the customer's statement, at most 16 characters.
    customer_note: &'a str,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct RefundRecord {
    refund_reference: Value,
    refund_status: Value,
}

impl refunds::Guest for Monnify {
    fn start(order: RefundOrder) -> Result<Refund, Fault> {
        let find = || find_existing(&order.refund_ref);
        match find()? {
            Some(made) => Ok(made),
            // A concurrent attempt that used the reference is the same refund.
            None => {
                let requested = request(&order).map_err(map_refund_fault);
                repeat::refunded(requested, is_duplicate, find)
            }
        }
    }

    fn check(provider_id: String) -> Result<Refund, Fault> {
        let path = format!("/api/v1/refunds/{}", http::encode(&provider_id));
        parse_refund(&api::get(&path)?)
    }
}

/// Every refund has its own reference, so a partial refund is requested like a whole one.
impl partial_refunds::Guest for Monnify {
    fn start(part: PartialRefundOrder) -> Result<PartialRefund, Fault> {
        let (order, _) = part.into();
        <Monnify as refunds::Guest>::start(order).map(PartialRefund::from)
    }
}

fn request(order: &RefundOrder) -> Result<Refund, Fault> {
    let refund_amount = naira::from_money(&order.amount)?;
    if order.amount.minor < MIN_AMOUNT_MINOR {
        return Err(Fault::invalid("amount", "Monnify does not refund less than 100 naira"));
    }
    let body = RefundRequest {
        transaction_reference: transaction_reference(order)?,
        refund_reference: &order.refund_ref,
        refund_amount,
        refund_reason: reason(order),
        customer_note: "Refund",
    };
    parse_refund(&api::post("/api/v1/refunds/initiate-refund", &body)?)
}

fn is_duplicate(refusal: &Fault) -> bool {
    matches!(&*refusal.code, "R9" | api::DUPLICATE_REFERENCE)
}

/// Returns the refund if it exists. If Monnify refuses the query, the fault is `unavailable`,
/// because the refund may exist.
fn find_existing(refund_ref: &str) -> Result<Option<Refund>, Fault> {
    match repeat::queried(api::get(&format!("/api/v1/refunds/{}", http::encode(refund_ref)))) {
        Ok(value) => parse_refund(&value).map(Some),
        Err(fault) if fault.category == FaultCategory::NotFound => Ok(None),
        Err(fault) => Err(fault),
    }
}

/// Monnify refunds a transaction by its own reference.
fn transaction_reference(order: &RefundOrder) -> Result<String, Fault> {
    if !order.transaction_id.is_empty() {
        return Ok(order.transaction_id.clone());
    }
    let found: Transaction = repeat::queried(transaction::find(&order.service_ref))?.read()?;
    if found.id().is_empty() { Err(unreadable_refund()) } else { Ok(found.id()) }
}

fn reason(order: &RefundOrder) -> String {
    let reason = if order.reason.trim().is_empty() { "Refund" } else { &order.reason };
    reason.chars().take(MAX_REASON_CHARS).collect()
}

/// Refines a refusal by Monnify's codes for refunds.
fn map_refund_fault(fault: Fault) -> Fault {
    let message = fault.message.clone();
    match fault.code.as_str() {
        "R3" | "R4" => Fault::invalid("amount", message).with_code(&fault.code),
        // The account's balance is unavailable, or the bank does not respond: a retry may succeed.
        "R10" | "R11" => Fault::unavailable(message).with_code(&fault.code),
        // Together with earlier refunds, this one would exceed the payment.
        "R12" => Fault::refused("partly-refunded", message),
        _ => fault,
    }
}

fn parse_refund(value: &RawJson) -> Result<Refund, Fault> {
    let made: RefundRecord = value.read()?;
    let provider_id = loose::text(&made.refund_reference);
    if provider_id.is_empty() {
        return Err(unreadable_refund());
    }
    let word = made.refund_status.as_str().ok_or_else(unreadable_refund)?.to_uppercase();
    let (status, message) = match word.as_str() {
        "COMPLETED" => (RefundStatus::Done, ""),
        "FAILED" => (RefundStatus::Failed, "Monnify could not make the refund"),
        "PENDING" | "IN_PROGRESS" => (RefundStatus::Pending, ""),
        unknown => {
            let unknown = text::code(unknown);
            log::warn(&format!("unknown refund status at Monnify: \"{unknown}\""));
            (RefundStatus::Pending, "")
        }
    };
    let (message, raw) = (message.to_owned(), transaction::redacted_json(value));
    Ok(Refund { status, provider_id, message, raw })
}

fn unreadable_refund() -> Fault {
    Fault::unavailable("Monnify's refund cannot be read").with_code("unexpected-answer")
}
