//! Refunds. Paystack accepts no reference for a refund, so `start` looks for an existing refund
//! before it requests one: a retry after a lost response finds the first attempt.

use serde_json::{Value, json};
use tollhouse_plugin::http;
use tollhouse_plugin::partial_refunds::{self, PartialRefund, PartialRefundOrder};
use tollhouse_plugin::refunds::{self, Refund, RefundOrder, RefundStatus};
use tollhouse_plugin::types::{Fault, FaultCategory};

use crate::{Paystack, api, loose, transaction};

impl refunds::Guest for Paystack {
    fn start(order: RefundOrder) -> Result<Refund, Fault> {
        let transaction = transaction_id(&order)?;
        if let Some(made) = find_existing(&transaction, &order)? {
            return Ok(made);
        }
        request(&transaction, &order)
    }

    fn check(provider_id: String) -> Result<Refund, Fault> {
        parse_refund(&api::get(&format!("/refund/{}", http::encode(&provider_id)))?)
    }
}

impl partial_refunds::Guest for Paystack {
    fn start(part: PartialRefundOrder) -> Result<PartialRefund, Fault> {
        let (order, earlier) = part.into();
        let transaction = transaction_id(&order)?;
        let made = match find_part(&transaction, &order, &earlier)? {
            Some(made) => made,
            None => request(&transaction, &order)?,
        };
        Ok(made.into())
    }
}

fn request(transaction: &str, order: &RefundOrder) -> Result<Refund, Fault> {
    let body = json!({
        "transaction": transaction,
        "amount": order.amount.minor,
        "currency": order.amount.currency,
        "merchant_note": format!("{} {}", order.reason, refund_note(order)).trim(),
    });
    parse_refund(&api::post("/refund", &body)?)
}

/// Paystack lists refunds by its own transaction id.
fn transaction_id(order: &RefundOrder) -> Result<String, Fault> {
    if !order.transaction_id.is_empty() {
        return Ok(order.transaction_id.clone());
    }
    Ok(loose::text(&transaction::find(&order.service_ref)?["id"]))
}

/// Returns this order's refund of the transaction, unless it does not exist or failed. A refund of
/// a part of the amount that was made elsewhere leaves too little: `partly-refunded`.
fn find_existing(transaction: &str, order: &RefundOrder) -> Result<Option<Refund>, Fault> {
    let mut of_others = false;
    for (item, made) in list(transaction, order)? {
        if has_note(&item, order) || is_of_amount(&item, order)? {
            return Ok(Some(made));
        }
        of_others = true;
    }
    match of_others {
        true => Err(Fault::refused("partly-refunded", "a part was already refunded at Paystack")),
        false => Ok(None),
    }
}

/// Returns this order's refund of a part, unless it does not exist or failed.
fn find_part(
    transaction: &str,
    order: &RefundOrder,
    earlier: &[String],
) -> Result<Option<Refund>, Fault> {
    let listed = list(transaction, order)?;
    if let Some((_, made)) = listed.iter().find(|(item, _)| has_note(item, order)) {
        return Ok(Some(made.clone()));
    }
    for (item, made) in listed {
        if !earlier.contains(&made.provider_id) && is_of_amount(&item, order)? {
            return Ok(Some(made));
        }
    }
    Ok(None)
}

/// Lists the transaction's refunds that did not fail.
fn list(transaction: &str, order: &RefundOrder) -> Result<Vec<(Value, Refund)>, Fault> {
    let list = match api::get(&format!("/refund?transaction={}", http::encode(transaction))) {
        Ok(list) => list,
        Err(fault) if fault.category == FaultCategory::NotFound => return Ok(Vec::new()),
        Err(fault) => return Err(fault),
    };
    let mut found = Vec::new();
    for item in list.as_array().ok_or_else(unreadable_refund)? {
        let made = parse_refund(item)?;
        if made.status != RefundStatus::Failed
            && is_for_transaction(item, transaction, &order.service_ref)
        {
            found.push((item.clone(), made));
        }
    }
    Ok(found)
}

/// Recognizes the refund by the note that its request wrote.
fn has_note(item: &Value, order: &RefundOrder) -> bool {
    loose::text(&item["merchant_note"]).contains(&refund_note(order))
}

/// A refund of the same amount also counts, whatever its origin.
fn is_of_amount(item: &Value, order: &RefundOrder) -> Result<bool, Fault> {
    let amount = loose::minor(&item["amount"]).ok_or_else(unreadable_refund)?;
    Ok(amount == order.amount.minor)
}

fn refund_note(order: &RefundOrder) -> String {
    format!("[{}]", order.refund_ref)
}

/// Returns whether a listed refund belongs to this transaction, named by an object, an id or a
/// reference. A refund that names no transaction was selected by the query's filter.
fn is_for_transaction(item: &Value, transaction: &str, service_ref: &str) -> bool {
    let named = &item["transaction"];
    let names = [loose::text(named), loose::text(&named["id"]), loose::text(&named["reference"])];
    let mut names = names.iter().filter(|name| !name.is_empty()).peekable();
    names.peek().is_none() || names.any(|name| name == transaction || name == service_ref)
}

fn parse_refund(data: &Value) -> Result<Refund, Fault> {
    let provider_id = loose::text(&data["id"]);
    let value = data["status"]
        .as_str()
        .filter(|_| !provider_id.is_empty())
        .ok_or_else(unreadable_refund)?;
    let (status, message) = match value {
        "processed" => (RefundStatus::Done, ""),
        "failed" => (RefundStatus::Failed, "Paystack could not make the refund"),
        "needs-attention" => {
            (RefundStatus::Pending, "Paystack needs the customer's bank details to continue")
        }
        _ => (RefundStatus::Pending, ""),
    };
    Ok(Refund { status, provider_id, message: message.to_owned(), raw: loose::redacted_json(data) })
}

fn unreadable_refund() -> Fault {
    Fault::unavailable("Paystack's refund cannot be read").with_code("unexpected-answer")
}
