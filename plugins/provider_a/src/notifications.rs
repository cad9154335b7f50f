//! Paystack webhooks. Paystack sends none for a failed charge: verification finds it.

use serde::Deserialize;
use serde_json::Value;
use tollhouse_plugin::notifications::{self, Notification, Refusal, Subject};
use tollhouse_plugin::{http, log, vault};

use crate::{Paystack, api, disputes, loose};

#[derive(Deserialize)]
struct Event {
    event: String,
    #[serde(default)]
    data: Value,
}

impl notifications::Guest for Paystack {
    fn parse(headers: Vec<(String, String)>, body: Vec<u8>) -> Result<Vec<Notification>, Refusal> {
        let signature = http::header(&headers, "x-paystack-signature").unwrap_or_default();
        if !is_authentic(&body, signature) {
            return Err(Refusal::Unauthentic);
        }
        let event: Event = serde_json::from_slice(&body)
            .map_err(|_| Refusal::Malformed("not a Paystack event".into()))?;
        Ok(vec![notification(event)?])
    }
}

/// Webhooks are signed with the account's secret key; no separate webhook key exists.
fn is_authentic(body: &[u8], signature: &str) -> bool {
    vault::signed_hex("sha512", api::SECRET_KEY, body, signature).unwrap_or_else(|fault| {
        log::error(&format!("the signature of a webhook cannot be checked: {}", fault.message));
        false
    })
}

fn notification(Event { event, data }: Event) -> Result<Notification, Refusal> {
    let (subject, reference) = match event.as_str() {
        "charge.success" => (Subject::Payment, loose::text(&data["reference"])),
        name if name.starts_with("charge.dispute.") => {
            let (transaction_id, service_ref) = disputes::transaction_names(&data);
            let subject = Subject::Other;
            return Ok(Notification { subject, event, service_ref, transaction_id });
        }
        name if name.starts_with("refund.") => {
            (Subject::Refund, loose::text(&data["transaction_reference"]))
        }
        name if name.starts_with("direct_debit.authorization.") => {
            (Subject::Mandate, loose::text(&data["reference"]))
        }
        _ => (Subject::Other, String::new()),
    };
    let named = !reference.is_empty();
    if !named && matches!(subject, Subject::Payment | Subject::Refund) {
        return Err(Refusal::Malformed("the event does not identify a payment".into()));
    }
    // In a refund event, `id` would be the id of the refund, if present at all.
    let transaction_id = match subject {
        Subject::Payment => loose::text(&data["id"]),
        _ => String::new(),
    };
    Ok(Notification { subject, event, service_ref: reference, transaction_id })
}
