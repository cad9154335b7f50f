//! Giving money back. Flutterwave takes no reference for a refund, so `start` looks for one before it asks for one: a
//! repeat after a lost answer finds what the first attempt made.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tollhouse_plugin::amount::Major;
use tollhouse_plugin::refunds::{self, Refund, RefundOrder, RefundStatus};
use tollhouse_plugin::told::Told;
use tollhouse_plugin::types::{Fault, FaultCategory};
use tollhouse_plugin::{http, log, loose, text};

use crate::{Flutterwave, api, transaction};

/// Of the list of refunds, should it be longer than those of one transaction.
const MAX_PAGES: u64 = 10;

#[derive(Serialize)]
struct RefundRequest {
    amount: Major,
    comments: String,
}

/// A refund as it is told when it is made, and in lists, where some names differ; in some they are spelled as in notifications.
#[derive(Deserialize, Default)]
#[serde(default)]
struct RefundRecord {
    id: Value,
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
}

impl RefundRecord {
    fn amount(&self) -> Option<Major> {
        self.amount_refunded.or(self.amount_as_notified)
    }

    fn transaction(&self) -> String {
        let told = loose::either(&self.tx_id, &self.transaction_id);
        if told.is_empty() { loose::text(&self.transaction_as_notified) } else { told }
    }
}

impl refunds::Guest for Flutterwave {
    fn start(order: RefundOrder) -> Result<Refund, Fault> {
        let transaction = transaction_id(&order)?;
        if let Some(made) = find_existing(&transaction, &order)? {
            return Ok(made);
        }
        let comments = format!("{} {}", order.reason, refund_note(&order)).trim().to_owned();
        let body = RefundRequest { amount: Major::from(&order.amount), comments };
        let path = format!("/transactions/{}/refund", http::encode(&transaction));
        match api::post(&path, &body) {
            Err(refusal) if refusal.is_refusal() => {
                find_after_refusal(&transaction, &order, refusal)
            }
            answer => parse_refund(&answer?.data),
        }
    }

    fn check(provider_id: String) -> Result<Refund, Fault> {
        parse_refund(&api::get(&format!("/refunds/{}", http::encode(&provider_id)))?.data)
    }
}

/// Refunds are asked for by Flutterwave's own id.
fn transaction_id(order: &RefundOrder) -> Result<String, Fault> {
    if !order.transaction_id.is_empty() {
        return Ok(order.transaction_id.clone());
    }
    let found = transaction::parse_payment(&transaction::find(&order.service_ref)?, "", None)?;
    match found.transaction_id.is_empty() {
        true => Err(unreadable_refund()),
        false => Ok(found.transaction_id),
    }
}

/// What there is of a refund that was refused: an attempt whose answer was lost may only now have come into the list. Nobody may
/// take it for refused while the words say that there is one.
fn find_after_refusal(
    transaction: &str,
    order: &RefundOrder,
    refusal: Fault,
) -> Result<Refund, Fault> {
    match find_existing(transaction, order) {
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

/// Our refund of this transaction, if there is one that did not fail. One that somebody else made of a part leaves less
/// than was ordered.
fn find_existing(transaction: &str, order: &RefundOrder) -> Result<Option<Refund>, Fault> {
    let mut of_others = false;
    for told in list(transaction)? {
        let item: RefundRecord = told.read()?;
        if !is_for_transaction(&item, transaction)? {
            continue;
        }
        let made = parse_refund(&told)?;
        match made.status {
            RefundStatus::Failed => {}
            _ if matches_order(&item, order)? => return Ok(Some(made)),
            _ => of_others = true,
        }
    }
    match of_others {
        true => Err(Fault::refused("partly-refunded", "a part was refunded at Flutterwave before")),
        false => Ok(None),
    }
}

/// All refunds of the transaction, and maybe others. If not all of them can be seen, nobody knows whether ours is there.
fn list(transaction: &str) -> Result<Vec<Told>, Fault> {
    let mut all = Vec::new();
    for page in 1..=MAX_PAGES {
        let path = format!("/refunds?id={}&page={page}", http::encode(transaction));
        let answer = match api::get(&path) {
            Ok(answer) => answer,
            Err(fault) if fault.category == FaultCategory::NotFound && page == 1 => return Ok(all),
            Err(fault) if fault.is_refusal() => return Err(fault.into_unavailable()),
            Err(fault) => return Err(fault),
        };
        all.extend(answer.data.read::<Vec<Told>>()?);
        if answer.meta["page_info"]["total_pages"].as_u64().unwrap_or(1) <= page {
            return Ok(all);
        }
    }
    Err(Fault::unavailable("Flutterwave's list of refunds is too long to be searched"))
}

/// By the note that `start` wrote. One of the whole amount serves as well, whoever made it.
fn matches_order(item: &RefundRecord, order: &RefundOrder) -> Result<bool, Fault> {
    if loose::either(&item.comments, &item.comment).contains(&refund_note(order)) {
        return Ok(true);
    }
    let amount = item.amount().ok_or_else(unreadable_refund)?;
    Ok(amount.minor() == order.amount.minor)
}

fn refund_note(order: &RefundOrder) -> String {
    format!("[{}]", order.refund_ref)
}

fn is_for_transaction(item: &RefundRecord, transaction: &str) -> Result<bool, Fault> {
    let named = item.transaction();
    if named.is_empty() { Err(unreadable_refund()) } else { Ok(named == transaction) }
}

fn parse_refund(told: &Told) -> Result<Refund, Fault> {
    let made: RefundRecord = told.read()?;
    let provider_id = loose::text(&made.id);
    if provider_id.is_empty() {
        return Err(unreadable_refund());
    }
    // "completed" alone says that it was begun; by which way it was disbursed comes behind it: "completed-mpgs".
    let word = made.status.as_str().ok_or_else(unreadable_refund)?.to_lowercase();
    let (status, message) = match word.as_str() {
        done if done.starts_with("completed-") => (RefundStatus::Done, ""),
        "failed" => (RefundStatus::Failed, "Flutterwave could not refund"),
        "completed" | "pending" | "processing" => (RefundStatus::Pending, ""),
        unknown => {
            let unknown = text::code(unknown);
            log::warn(&format!("Flutterwave tells of a refund that is \"{unknown}\""));
            (RefundStatus::Pending, "")
        }
    };
    let raw = loose::without(&["token"], "", told.value());
    Ok(Refund { status, provider_id, message: message.to_owned(), raw })
}

fn unreadable_refund() -> Fault {
    Fault::unavailable("Flutterwave's refund cannot be read").with_code("unexpected-answer")
}
