//! What Monnify sends of its own accord.

use serde::Deserialize;
use serde_json::Value;
use tollhouse_plugin::notifications::{self, Notification, Refusal, Subject};
use tollhouse_plugin::{http, log, loose, vault};

use crate::{Monnify, api, transaction};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Event {
    event_type: String,
    #[serde(default)]
    event_data: Value,
}

impl notifications::Guest for Monnify {
    fn parse(headers: Vec<(String, String)>, body: Vec<u8>) -> Result<Vec<Notification>, Refusal> {
        let signature = http::header(&headers, "monnify-signature").unwrap_or_default();
        if !is_authentic(&body, signature) {
            return Err(Refusal::Unauthentic);
        }
        let event: Event = serde_json::from_slice(&body)
            .map_err(|_| Refusal::Malformed("no event of Monnify's".into()))?;
        Ok(vec![notification(event)?])
    }
}

fn is_authentic(body: &[u8], signature: &str) -> bool {
    vault::signed_hex("sha512", api::SECRET_KEY, body, signature).unwrap_or_else(|fault| {
        log::error(&format!("a notification cannot be checked: {}", fault.message));
        false
    })
}

fn notification(Event { event_type: event, event_data }: Event) -> Result<Notification, Refusal> {
    let payment = loose::text(&event_data["paymentReference"]);
    let transaction = loose::text(&event_data["transactionReference"]);
    let (subject, service_ref, transaction_id) = match event.as_str() {
        // A transfer of too little is rejected; what that makes of the payment is to be asked.
        "SUCCESSFUL_TRANSACTION" | "REJECTED_PAYMENT" => (Subject::Payment, payment, transaction),
        "SUCCESSFUL_REFUND" | "FAILED_REFUND" if payment.is_empty() && !transaction.is_empty() => {
            (Subject::Refund, service_ref_of(&transaction), transaction)
        }
        "SUCCESSFUL_REFUND" | "FAILED_REFUND" => (Subject::Refund, payment, transaction),
        "MANDATE_UPDATE" => {
            let mandate = loose::text(&event_data["externalMandateReference"]);
            (Subject::Mandate, mandate, String::new())
        }
        _ => (Subject::Other, String::new(), String::new()),
    };
    let names_nothing = service_ref.is_empty() && transaction_id.is_empty();
    let must_name = match subject {
        Subject::Payment => service_ref.is_empty(),
        Subject::Refund => names_nothing,
        Subject::Mandate | Subject::Other => false,
    };
    match must_name {
        true => Err(Refusal::Malformed("the event names no payment".into())),
        false => Ok(Notification { subject, event, service_ref, transaction_id }),
    }
}

/// A refund's event names the payment by Monnify's reference alone. "" when Monnify does not tell ours just now: the host asks
/// about its refunds by itself as well.
fn service_ref_of(transaction: &str) -> String {
    transaction::fetch_service_ref(transaction).unwrap_or_else(|fault| {
        log::warn(&format!("whose refund it is cannot be asked: {}", fault.message));
        String::new()
    })
}
