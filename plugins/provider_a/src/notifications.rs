//! What Paystack sends of its own accord. There is no event for a charge that failed: that is found by asking.

use serde::Deserialize;
use serde_json::Value;
use tollhouse_plugin::notifications::{self, Notification, Refusal, Subject};
use tollhouse_plugin::{http, log, vault};

use crate::{Paystack, api, loose};

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
            .map_err(|_| Refusal::Malformed("no event of Paystack's".into()))?;
        Ok(vec![notification(event)?])
    }
}

/// Signed with the account's own key: there is no other for notifications.
fn is_authentic(body: &[u8], signature: &str) -> bool {
    vault::signed_hex("sha512", api::SECRET_KEY, body, signature).unwrap_or_else(|fault| {
        log::error(&format!("a notification cannot be checked: {}", fault.message));
        false
    })
}

fn notification(Event { event, data }: Event) -> Result<Notification, Refusal> {
    let (subject, reference) = match event.as_str() {
        "charge.success" => (Subject::Payment, loose::text(&data["reference"])),
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
        return Err(Refusal::Malformed("the event names no payment".into()));
    }
    // Of a refund's event this would be the refund's id, where there is one at all.
    let transaction_id = match subject {
        Subject::Payment => loose::text(&data["id"]),
        _ => String::new(),
    };
    Ok(Notification { subject, event, service_ref: reference, transaction_id })
}
