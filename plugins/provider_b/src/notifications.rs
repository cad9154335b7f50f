//! What Flutterwave sends of its own accord: little more than a hint, for the shared text that comes with it signs nothing.

use serde_json::Value;
use tollhouse_plugin::notifications::{self, Notification, Refusal, Subject};
use tollhouse_plugin::types::Fault;
use tollhouse_plugin::{http, log, loose, vault};

use crate::{Flutterwave, transaction};

/// The manifest's name for the text that the account's owner chose on the dashboard.
const WEBHOOK_HASH: &str = "webhook_hash";

impl notifications::Guest for Flutterwave {
    fn parse(headers: Vec<(String, String)>, body: Vec<u8>) -> Result<Vec<Notification>, Refusal> {
        let authentic = is_authentic(&headers, &body).unwrap_or_else(|fault| {
            log::error(&format!("a notification cannot be checked: {}", fault.message));
            false
        });
        if !authentic {
            return Err(Refusal::Unauthentic);
        }
        let told: Value = serde_json::from_slice(&body).map_err(|_| unknown_event())?;
        let notification = match told["event"].as_str() {
            Some(event) => charge_notification(event.to_owned(), &told["data"])?,
            None => refund_notification(&told)?,
        };
        Ok(vec![notification])
    }
}

/// Older accounts send the text itself, newer ones a hash of the body that is keyed with it. One of the two must be there,
/// and what is there must be right.
fn is_authentic(headers: &[(String, String)], body: &[u8]) -> Result<bool, Fault> {
    let hash = http::header(headers, "verif-hash")
        .map(|told| Ok(!told.is_empty() && vault::matches(WEBHOOK_HASH, told.as_bytes())?));
    let signature = http::header(headers, "flutterwave-signature")
        .map(|told| vault::signed_base64("sha256", WEBHOOK_HASH, body, told));
    let proofs: Vec<bool> = hash.into_iter().chain(signature).collect::<Result<_, Fault>>()?;
    Ok(!proofs.is_empty() && proofs.into_iter().all(|right| right))
}

fn charge_notification(event: String, data: &Value) -> Result<Notification, Refusal> {
    if event != "charge.completed" {
        let (service_ref, transaction_id) = Default::default();
        return Ok(Notification { subject: Subject::Other, event, service_ref, transaction_id });
    }
    let (service_ref, transaction_id) = (loose::text(&data["tx_ref"]), loose::text(&data["id"]));
    if service_ref.is_empty() {
        return Err(Refusal::Malformed("the event names no payment".into()));
    }
    Ok(Notification { subject: Subject::Payment, event, service_ref, transaction_id })
}

/// A refund comes without the name of an event, and names the payment by Flutterwave's id alone.
fn refund_notification(told: &Value) -> Result<Notification, Refusal> {
    let transaction_id = loose::either(&told["TransactionId"], &told["transaction_id"]);
    if transaction_id.is_empty() {
        return Err(unknown_event());
    }
    let (event, service_ref) = ("refund".to_owned(), service_ref_of(&transaction_id));
    Ok(Notification { subject: Subject::Refund, event, service_ref, transaction_id })
}

/// "" when Flutterwave does not tell our reference just now: the host asks about its refunds by itself as well.
fn service_ref_of(transaction: &str) -> String {
    transaction::fetch_service_ref(transaction).unwrap_or_else(|fault| {
        log::warn(&format!("whose refund it is cannot be asked: {}", fault.message));
        String::new()
    })
}

fn unknown_event() -> Refusal {
    Refusal::Malformed("no event of Flutterwave's".into())
}
