//! Refunds. Paystack accepts no reference for a refund, so an earlier attempt is recognized by its
//! note.

use serde_json::{Value, json};
use tollhouse_plugin::http;
use tollhouse_plugin::noted_refunds::{self, ListedRefund, NotedRefunds};
use tollhouse_plugin::partial_refunds::{self, PartialRefund, PartialRefundOrder};
use tollhouse_plugin::refunds::{self, Refund, RefundOrder, RefundStatus};
use tollhouse_plugin::types::Fault;

use crate::{Paystack, api, loose, transaction};

impl refunds::Guest for Paystack {
    fn start(order: RefundOrder) -> Result<Refund, Fault> {
        noted_refunds::start::<Paystack>(&order, None)
    }

    fn check(provider_id: String) -> Result<Refund, Fault> {
        parse_refund(&api::get(&format!("/refund/{}", http::encode(&provider_id)))?)
    }
}

impl partial_refunds::Guest for Paystack {
    fn start(part: PartialRefundOrder) -> Result<PartialRefund, Fault> {
        let (order, earlier) = part.into();
        noted_refunds::start::<Paystack>(&order, Some(&earlier)).map(PartialRefund::from)
    }
}

impl NotedRefunds for Paystack {
    /// Paystack lists refunds by its own transaction id.
    fn find_transaction(service_ref: &str) -> Result<String, Fault> {
        Ok(loose::text(&transaction::find(service_ref)?["id"]))
    }

    fn list(transaction: &str, order: &RefundOrder) -> Result<Vec<ListedRefund>, Fault> {
        let list = api::get(&format!("/refund?transaction={}", http::encode(transaction)))?;
        let mut found = Vec::new();
        for item in list.as_array().ok_or_else(unreadable_refund)? {
            let refund = parse_refund(item)?;
            if refund.status != RefundStatus::Failed
                && is_for_transaction(item, transaction, &order.service_ref)
            {
                let note = loose::text(&item["merchant_note"]);
                found.push(ListedRefund { refund, note, amount: loose::minor(&item["amount"]) });
            }
        }
        Ok(found)
    }

    fn request(transaction: &str, order: &RefundOrder, note: &str) -> Result<Refund, Fault> {
        let body = json!({
            "transaction": transaction,
            "amount": order.amount.minor,
            "currency": order.amount.currency,
            "merchant_note": note,
        });
        parse_refund(&api::post("/refund", &body)?)
    }
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
