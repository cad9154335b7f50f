//! The state of a payment, in the response format that verification and charges share.

use serde::Deserialize;
use serde_json::Value;
use tollhouse_plugin::http;
use tollhouse_plugin::payments::{Payment, PaymentStatus};
use tollhouse_plugin::types::{Fault, Money};
use tollhouse_plugin::verification;

use crate::{Paystack, api, instrument, loose};

impl verification::Guest for Paystack {
    fn verify(service_ref: String) -> Result<Payment, Fault> {
        let data = find(&service_ref)?;
        parse_payment(&data, &service_ref, None)
    }
}

/// Returns the `data` of a transaction, by service reference.
pub(crate) fn find(service_ref: &str) -> Result<Value, Fault> {
    api::get(&format!("/transaction/verify/{}", http::encode(service_ref)))
}

/// Any field may be absent: a charge that waits for the customer has little more than a reference.
#[derive(Deserialize, Default)]
#[serde(default)]
pub(crate) struct Transaction {
    id: Value,
    status: Value,
    reference: Value,
    amount: Value,
    requested_amount: Value,
    currency: Value,
    fees: Value,
    pub(crate) channel: Value,
    paid_at: Value,
    #[serde(rename = "paidAt")]
    paid_at_camel: Value,
    gateway_response: Value,
    message: Value,
    pub(crate) authorization: Value,
    pub(crate) customer: Value,
    paused: Value,
    authorization_url: Value,
    metadata: Value,
}

/// Converts a transaction. Paystack omits the amount before money is taken; `requested_amount`
/// replaces it.
pub(crate) fn parse_payment(
    data: &Value,
    service_ref: &str,
    requested_amount: Option<&Money>,
) -> Result<Payment, Fault> {
    let transaction = Transaction::deserialize(data).map_err(|_| unreadable_transaction())?;
    let amount = amount(&transaction, requested_amount)?;
    let requested = loose::minor(&transaction.requested_amount)
        .map(|minor| Money { minor, currency: amount.currency.clone() });
    let reference = loose::text(&transaction.reference);
    Ok(Payment {
        status: status(&transaction),
        service_ref: if reference.is_empty() { service_ref.to_owned() } else { reference },
        transaction_id: loose::text(&transaction.id),
        amount,
        requested,
        fees_minor: loose::minor(&transaction.fees),
        channel: loose::text(&transaction.channel).to_lowercase(),
        paid_at: paid_at(&transaction),
        message: loose::either(&transaction.gateway_response, &transaction.message),
        instrument: instrument::from_transaction(&transaction),
        challenge_url: challenge_url(&transaction),
        metadata: loose::object(&transaction.metadata),
        raw: loose::redacted_json(data),
    })
}

fn amount(transaction: &Transaction, requested_amount: Option<&Money>) -> Result<Money, Fault> {
    let currency = loose::text(&transaction.currency);
    match (loose::minor(&transaction.amount), requested_amount) {
        (Some(minor), _) if !currency.is_empty() => Ok(Money { minor, currency }),
        (Some(minor), Some(requested_amount)) => {
            Ok(Money { minor, currency: requested_amount.currency.clone() })
        }
        (None, Some(requested_amount)) if status(transaction) != PaymentStatus::Success => {
            Ok(requested_amount.clone())
        }
        _ => Err(unreadable_transaction()),
    }
}

/// `abandoned` is not final, because the customer may still pay. Unknown statuses are pending too.
fn status(transaction: &Transaction) -> PaymentStatus {
    match transaction.status.as_str() {
        _ if is_paused(transaction) => PaymentStatus::Pending,
        Some("success") => PaymentStatus::Success,
        Some("failed") => PaymentStatus::Failed,
        Some("reversed") => PaymentStatus::Reversed,
        _ => PaymentStatus::Pending,
    }
}

fn is_paused(transaction: &Transaction) -> bool {
    transaction.paused == Value::Bool(true)
}

/// Returns the page on which the customer must continue. A transaction that is not paused may still
/// have the URL of its checkout page.
fn challenge_url(transaction: &Transaction) -> Option<String> {
    let url = loose::text(&transaction.authorization_url);
    (is_paused(transaction) && !url.is_empty()).then_some(url)
}

/// Accepts only RFC 3339 timestamps in UTC.
fn paid_at(transaction: &Transaction) -> Option<String> {
    let at = loose::either(&transaction.paid_at, &transaction.paid_at_camel);
    let moment = at.len() >= 20 && at.as_bytes()[10] == b'T';
    (moment && (at.ends_with('Z') || at.ends_with("+00:00"))).then_some(at)
}

fn unreadable_transaction() -> Fault {
    Fault::unavailable("Paystack's transaction cannot be read").with_code("unexpected-answer")
}
