//! Refunds. Flutterwave accepts no reference for a refund, so `start` looks for an existing refund
//! before it requests one: a retry after a lost response finds the first attempt.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tollhouse_plugin::amount::Major;
use tollhouse_plugin::partial_refunds::{self, PartialRefund, PartialRefundOrder};
use tollhouse_plugin::raw_json::RawJson;
use tollhouse_plugin::refunds::{self, Refund, RefundOrder, RefundStatus};
use tollhouse_plugin::types::{Fault, FaultCategory};
use tollhouse_plugin::{http, log, loose, normal, text};

use crate::{Flutterwave, api, list, transaction};

#[derive(Serialize)]
struct RefundRequest {
    amount: Major,
    comments: String,
}

/// A refund as returned when it is created, in lists (where some names differ) and in webhooks.
#[derive(Deserialize, Default)]
#[serde(default)]
pub(crate) struct RefundRecord {
    pub(crate) id: Value,
    status: Value,
    amount_refunded: Option<Major>,
    #[serde(rename = "AmountRefunded")]
    amount_as_notified: Option<Major>,
    tx_id: Value,
    transaction_id: Value,
    #[serde(rename = "TransactionId")]
    transaction_as_notified: Value,
    comments: Value,
    comment: Value,
    created_at: Value,
    #[serde(rename = "createdAt")]
    created_at_as_notified: Value,
}

impl RefundRecord {
    pub(crate) fn amount(&self) -> Option<Major> {
        self.amount_refunded.or(self.amount_as_notified)
    }

    /// Returns Flutterwave's id of the transaction.
    pub(crate) fn transaction(&self) -> String {
        let value = loose::either(&self.tx_id, &self.transaction_id);
        if value.is_empty() { loose::text(&self.transaction_as_notified) } else { value }
    }

    pub(crate) fn created_at(&self) -> Option<String> {
        normal::moment(&self.created_at, 0)
            .or_else(|| normal::moment(&self.created_at_as_notified, 0))
    }

    /// Returns the status in lower case.
    pub(crate) fn status(&self) -> Result<String, Fault> {
        Ok(self.status.as_str().ok_or_else(unreadable_refund)?.to_lowercase())
    }

    /// Recognizes the refund by the note that its request wrote.
    fn has_note(&self, order: &RefundOrder) -> bool {
        loose::either(&self.comments, &self.comment).contains(&refund_note(order))
    }

    /// A refund of the same amount also counts, whatever its origin.
    fn is_of_amount(&self, order: &RefundOrder) -> Result<bool, Fault> {
        let amount = self.amount().ok_or_else(unreadable_refund)?;
        Ok(amount.minor() == order.amount.minor)
    }

    pub(crate) fn is_for_transaction(&self, transaction: &str) -> Result<bool, Fault> {
        let named = self.transaction();
        if named.is_empty() { Err(unreadable_refund()) } else { Ok(named == transaction) }
    }
}

impl refunds::Guest for Flutterwave {
    fn start(order: RefundOrder) -> Result<Refund, Fault> {
        start(&order, find_existing)
    }

    fn check(provider_id: String) -> Result<Refund, Fault> {
        parse_refund(&api::get(&format!("/refunds/{}", http::encode(&provider_id)))?.data)
    }
}

impl partial_refunds::Guest for Flutterwave {
    fn start(part: PartialRefundOrder) -> Result<PartialRefund, Fault> {
        let (order, earlier) = part.into();
        let find = |transaction: &str, order: &RefundOrder| find_part(transaction, order, &earlier);
        start(&order, find).map(PartialRefund::from)
    }
}

/// Requests the refund unless `find` returns an earlier attempt.
fn start(
    order: &RefundOrder,
    find: impl Fn(&str, &RefundOrder) -> Result<Option<Refund>, Fault>,
) -> Result<Refund, Fault> {
    let transaction = transaction_id(order)?;
    if let Some(made) = find(&transaction, order)? {
        return Ok(made);
    }
    let comments = format!("{} {}", order.reason, refund_note(order)).trim().to_owned();
    let body = RefundRequest { amount: Major::from(&order.amount), comments };
    let path = format!("/transactions/{}/refund", http::encode(&transaction));
    match api::post(&path, &body) {
        Err(refusal) if refusal.is_refusal() => {
            find_after_refusal(find(&transaction, order), refusal)
        }
        result => parse_refund(&result?.data),
    }
}

/// Flutterwave lists refunds by its own transaction id.
fn transaction_id(order: &RefundOrder) -> Result<String, Fault> {
    if !order.transaction_id.is_empty() {
        return Ok(order.transaction_id.clone());
    }
    transaction::find_id(&order.service_ref)
}

/// Judges a refusal by what was found after it: an attempt whose response was lost may be listed
/// only now. If none is found but the message says that one exists, the outcome is unknown.
fn find_after_refusal(
    found: Result<Option<Refund>, Fault>,
    refusal: Fault,
) -> Result<Refund, Fault> {
    match found {
        Ok(Some(made)) => Ok(made),
        Ok(None) if indicates_existing_refund(&refusal) => Err(refusal.into_unavailable()),
        Ok(None) => Err(refusal),
        Err(fault) if fault.is_refusal() => Err(fault),
        Err(fault) => Err(fault.into_unavailable()),
    }
}

fn indicates_existing_refund(refusal: &Fault) -> bool {
    let words = refusal.message.to_lowercase();
    let of_refunds = words.contains("refund");
    let done = ["already", "been refunded", "was refunded", "fully refunded", "duplicate"];
    of_refunds && done.iter().any(|phrase| words.contains(phrase))
}

/// Returns this order's refund of the transaction, unless it does not exist or failed. A refund of
/// a part of the amount that was made elsewhere leaves too little: `partly-refunded`.
fn find_existing(transaction: &str, order: &RefundOrder) -> Result<Option<Refund>, Fault> {
    let mut of_others = false;
    for (item, made) in list_made(transaction)? {
        if item.has_note(order) || item.is_of_amount(order)? {
            return Ok(Some(made));
        }
        of_others = true;
    }
    match of_others {
        true => {
            Err(Fault::refused("partly-refunded", "a part was already refunded at Flutterwave"))
        }
        false => Ok(None),
    }
}

/// Returns this order's refund of a part, unless it does not exist or failed.
fn find_part(
    transaction: &str,
    order: &RefundOrder,
    earlier: &[String],
) -> Result<Option<Refund>, Fault> {
    let listed = list_made(transaction)?;
    if let Some((_, made)) = listed.iter().find(|(item, _)| item.has_note(order)) {
        return Ok(Some(made.clone()));
    }
    for (item, made) in listed {
        if !earlier.contains(&made.provider_id) && item.is_of_amount(order)? {
            return Ok(Some(made));
        }
    }
    Ok(None)
}

/// Lists the transaction's refunds that did not fail.
fn list_made(transaction: &str) -> Result<Vec<(RefundRecord, Refund)>, Fault> {
    let mut found = Vec::new();
    for value in list(transaction)? {
        let item: RefundRecord = value.read()?;
        if !item.is_for_transaction(transaction)? {
            continue;
        }
        let made = parse_refund(&value)?;
        if made.status != RefundStatus::Failed {
            found.push((item, made));
        }
    }
    Ok(found)
}

/// Lists all refunds of the transaction, and possibly others. An incomplete list is a fault,
/// because it may miss this order's refund.
fn list(transaction: &str) -> Result<Vec<RawJson>, Fault> {
    match list::fetch("refunds", transaction) {
        Err(fault) if fault.category == FaultCategory::NotFound => Ok(Vec::new()),
        listed => listed,
    }
}

fn refund_note(order: &RefundOrder) -> String {
    format!("[{}]", order.refund_ref)
}

fn parse_refund(value: &RawJson) -> Result<Refund, Fault> {
    let made: RefundRecord = value.read()?;
    let provider_id = loose::text(&made.id);
    if provider_id.is_empty() {
        return Err(unreadable_refund());
    }
    // "completed" only means initiated. A disbursed refund has its method appended:
    // "completed-mpgs".
    let word = made.status()?;
    let (status, message) = match word.as_str() {
        done if done.starts_with("completed-") => (RefundStatus::Done, ""),
        "failed" => (RefundStatus::Failed, "Flutterwave could not make the refund"),
        "completed" | "pending" | "processing" => (RefundStatus::Pending, ""),
        unknown => {
            let unknown = text::code(unknown);
            log::warn(&format!("unknown refund status at Flutterwave: \"{unknown}\""));
            (RefundStatus::Pending, "")
        }
    };
    let raw = loose::without(&["token"], "", value.value());
    Ok(Refund { status, provider_id, message: message.to_owned(), raw })
}

fn unreadable_refund() -> Fault {
    Fault::unavailable("Flutterwave's refund cannot be read").with_code("unexpected-answer")
}
