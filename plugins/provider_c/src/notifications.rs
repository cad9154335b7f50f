//! Monnify webhooks.

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
            .map_err(|_| Refusal::Malformed("not a Monnify event".into()))?;
        Ok(vec![notification(event)?])
    }
}

fn is_authentic(body: &[u8], signature: &str) -> bool {
    vault::signed_hex("sha512", api::SECRET_KEY, body, signature).unwrap_or_else(|fault| {
        log::error(&format!("the signature of a webhook cannot be checked: {}", fault.message));
        false
    })
}

fn notification(Event { event_type: event, event_data }: Event) -> Result<Notification, Refusal> {
    let payment = loose::text(&event_data["paymentReference"]);
    let transaction = loose::text(&event_data["transactionReference"]);
    let (subject, service_ref, transaction_id) = match event.as_str() {
        // A transfer of less than the amount is rejected; verification finds the effect on the
        // payment.
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
        true => Err(Refusal::Malformed("the event does not identify a payment".into())),
        false => Ok(Notification { subject, event, service_ref, transaction_id }),
    }
}

/// Returns the service reference for a refund event that has only Monnify's reference, or "" if the
/// query fails: the host also polls its refunds.
fn service_ref_of(transaction: &str) -> String {
    transaction::fetch_service_ref(transaction).unwrap_or_else(|fault| {
        log::warn(&format!("the payment of a refund could not be looked up: {}", fault.message));
        String::new()
    })
}
