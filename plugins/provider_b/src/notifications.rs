//! Flutterwave webhooks. They are only a hint: older accounts authenticate them by a shared text
//! that does not sign the body.

use serde_json::Value;
use tollhouse_plugin::notifications::{self, Notification, Refusal, Subject};
use tollhouse_plugin::types::Fault;
use tollhouse_plugin::{http, log, loose, vault};

use crate::{Flutterwave, transaction};

/// Name of the secret in the manifest: the text that the account's owner chose on the dashboard.
const WEBHOOK_HASH: &str = "webhook_hash";

impl notifications::Guest for Flutterwave {
    fn parse(headers: Vec<(String, String)>, body: Vec<u8>) -> Result<Vec<Notification>, Refusal> {
        let authentic = is_authentic(&headers, &body).unwrap_or_else(|fault| {
            log::error(&format!("the signature of a webhook cannot be checked: {}", fault.message));
            false
        });
        if !authentic {
            return Err(Refusal::Unauthentic);
        }
        let value: Value = serde_json::from_slice(&body).map_err(|_| unknown_event())?;
        let notification = match value["event"].as_str() {
            Some(event) => charge_notification(event.to_owned(), &value["data"])?,
            None => refund_notification(&value)?,
        };
        Ok(vec![notification])
    }
}

/// Older accounts send the shared text itself, newer ones an HMAC of the body under it. At least
/// one must be present, and each that is present must match.
fn is_authentic(headers: &[(String, String)], body: &[u8]) -> Result<bool, Fault> {
    let hash = http::header(headers, "verif-hash")
        .map(|value| Ok(!value.is_empty() && vault::matches(WEBHOOK_HASH, value.as_bytes())?));
    let signature = http::header(headers, "flutterwave-signature")
        .map(|value| vault::signed_base64("sha256", WEBHOOK_HASH, body, value));
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
        return Err(Refusal::Malformed("the event does not identify a payment".into()));
    }
    Ok(Notification { subject: Subject::Payment, event, service_ref, transaction_id })
}

/// A refund has no event name, and names the payment only by Flutterwave's id.
fn refund_notification(value: &Value) -> Result<Notification, Refusal> {
    let transaction_id = loose::either(&value["TransactionId"], &value["transaction_id"]);
    if transaction_id.is_empty() {
        return Err(unknown_event());
    }
    let (event, service_ref) = ("refund".to_owned(), service_ref_of(&transaction_id));
    Ok(Notification { subject: Subject::Refund, event, service_ref, transaction_id })
}

/// Returns the service reference of a transaction, or "" if the query fails: the host also polls
/// its refunds.
fn service_ref_of(transaction: &str) -> String {
    transaction::fetch_service_ref(transaction).unwrap_or_else(|fault| {
        log::warn(&format!("the payment of a refund could not be looked up: {}", fault.message));
        String::new()
    })
}

fn unknown_event() -> Refusal {
    Refusal::Malformed("not a Flutterwave event".into())
}
