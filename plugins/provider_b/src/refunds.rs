//! Refunds. Flutterwave accepts no reference for a refund, so an earlier attempt is recognized by
//! its note.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tollhouse_plugin::amount::Major;
use tollhouse_plugin::noted_refunds::{self, ListedRefund, NotedRefunds};
use tollhouse_plugin::partial_refunds::{self, PartialRefund, PartialRefundOrder};
use tollhouse_plugin::raw_json::RawJson;
use tollhouse_plugin::refunds::{self, Refund, RefundOrder, RefundStatus};
use tollhouse_plugin::types::Fault;
use tollhouse_plugin::{http, log, loose, normal, text};

use crate::{Flutterwave, api, list, transaction};

#[derive(Serialize)]
struct RefundRequest<'a> {
    amount: Major,
    comments: &'a str,
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

    pub(crate) fn is_for_transaction(&self, transaction: &str) -> Result<bool, Fault> {
        let named = self.transaction();
        if named.is_empty() { Err(unreadable_refund()) } else { Ok(named == transaction) }
    }
}

impl refunds::Guest for Flutterwave {
    fn start(order: RefundOrder) -> Result<Refund, Fault> {
        noted_refunds::start::<Flutterwave>(&order, None)
    }

    fn check(provider_id: String) -> Result<Refund, Fault> {
        parse_refund(&api::get(&format!("/refunds/{}", http::encode(&provider_id)))?.data)
    }
}

impl partial_refunds::Guest for Flutterwave {
    fn start(part: PartialRefundOrder) -> Result<PartialRefund, Fault> {
        let (order, earlier) = part.into();
        noted_refunds::start::<Flutterwave>(&order, Some(&earlier)).map(PartialRefund::from)
    }
}

impl NotedRefunds for Flutterwave {
    /// Flutterwave lists refunds by its own transaction id.
    fn find_transaction(service_ref: &str) -> Result<String, Fault> {
        transaction::find_id(service_ref)
    }

    /// The list may have refunds of other transactions.
    fn list(transaction: &str, order: &RefundOrder) -> Result<Vec<ListedRefund>, Fault> {
        let mut found = Vec::new();
        for value in list::fetch("refunds", transaction)? {
            let item: RefundRecord = value.read()?;
            if !item.is_for_transaction(transaction)? {
                continue;
            }
            let refund = parse_refund(&value)?;
            if refund.status != RefundStatus::Failed {
                let note = loose::either(&item.comments, &item.comment);
                let amount = item.amount().map(|amount| amount.money(&order.amount.currency).minor);
                found.push(ListedRefund { refund, note, amount });
            }
        }
        Ok(found)
    }

    fn request(transaction: &str, order: &RefundOrder, note: &str) -> Result<Refund, Fault> {
        let body = RefundRequest { amount: Major::from(&order.amount), comments: note };
        let path = format!("/transactions/{}/refund", http::encode(transaction));
        parse_refund(&api::post(&path, &body)?.data)
    }

    fn is_duplicate(refusal: &Fault) -> bool {
        let words = refusal.message.to_lowercase();
        let of_refunds = words.contains("refund");
        let done = ["already", "been refunded", "was refunded", "fully refunded", "duplicate"];
        of_refunds && done.iter().any(|phrase| words.contains(phrase))
    }
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
