//! A payment provider: hosted checkout, verification and signed webhooks.

use serde::Deserialize;
use serde_json::{Value, json};
use tollhouse_plugin::checkout::{self, CheckoutOrder, CheckoutSession};
use tollhouse_plugin::http::{self, Request, Response};
use tollhouse_plugin::notifications::{self, Notification, Refusal, Subject};
use tollhouse_plugin::payments::{Payment, PaymentStatus};
use tollhouse_plugin::types::{Fault, Money};
use tollhouse_plugin::{settings, vault, verification};

#[cfg(test)]
mod tests;

/// The plugin.
#[derive(Debug)]
pub struct Plugin;

tollhouse_plugin::export!(Plugin: checkout, verification, notifications);

#[derive(Deserialize)]
struct Begun {
    url: String,
}

#[derive(Deserialize)]
struct Told {
    id: String,
    status: String,
    amount: u64,
    currency: String,
    metadata: Option<Value>,
}

#[derive(Deserialize)]
struct Event {
    event: String,
    reference: String,
}

/// An error from the provider.
#[derive(Deserialize)]
struct Problem {
    code: String,
    message: String,
}

impl checkout::Guest for Plugin {
    fn start(order: CheckoutOrder) -> Result<CheckoutSession, Fault> {
        let metadata: Value = serde_json::from_str(&order.metadata).unwrap_or_default();
        let body = json!({
            "reference": order.service_ref,
            "amount": order.amount.minor,
            "currency": order.amount.currency,
            "email": order.email,
            "return_url": order.success_url,
            "metadata": metadata,
        });
        let answer = send(Request::post(settings::url("base_url", "/payments")?).json(&body))?;
        let Begun { url } = answer.json()?;
        Ok(CheckoutSession { url, service_ref: order.service_ref, raw: answer.text() })
    }
}

impl verification::Guest for Plugin {
    fn verify(service_ref: String) -> Result<Payment, Fault> {
        let path = format!("/payments/{}", http::encode(&service_ref));
        let answer = send(Request::get(settings::url("base_url", &path)?))?;
        let told: Told = answer.json()?;
        Ok(Payment {
            // Unknown statuses are pending: they prove neither success nor failure.
            status: match told.status.as_str() {
                "paid" => PaymentStatus::Success,
                "declined" => PaymentStatus::Failed,
                "refunded" => PaymentStatus::Reversed,
                _ => PaymentStatus::Pending,
            },
            service_ref,
            transaction_id: told.id,
            amount: Money { minor: told.amount, currency: told.currency },
            requested: None,
            fees_minor: None,
            channel: "card".into(),
            paid_at: None,
            message: String::new(),
            instrument: None,
            challenge_url: None,
            metadata: told.metadata.map(|metadata| metadata.to_string()),
            raw: answer.text(),
        })
    }
}

impl notifications::Guest for Plugin {
    fn parse(headers: Vec<(String, String)>, body: Vec<u8>) -> Result<Vec<Notification>, Refusal> {
        let signature = http::header(&headers, "x-signature").unwrap_or_default();
        if !vault::signed_hex("sha256", "webhook_secret", &body, signature).unwrap_or(false) {
            return Err(Refusal::Unauthentic);
        }
        let Event { event, reference } = serde_json::from_slice(&body)
            .map_err(|_| Refusal::Malformed("not an event of the provider".into()))?;
        Ok(vec![Notification {
            subject: Subject::Payment,
            event,
            service_ref: reference,
            transaction_id: String::new(),
        }])
    }
}

/// Sends a request with the account's key, and maps a status other than 2xx to a fault.
fn send(request: Request) -> Result<Response, Fault> {
    let answer = request.bearer(&vault::secret("api_key")?).send()?;
    match answer.status {
        200..300 => Ok(answer),
        401 | 403 => Err(Fault::misconfigured("the provider does not accept the key")),
        400 | 404 | 409 | 422 => Err(refusal(&answer)),
        status => Err(Fault::unavailable(format!("the provider returned {status}"))),
    }
}

/// Only the provider itself can refuse: an error page from an intermediary counts as an outage.
fn refusal(answer: &Response) -> Fault {
    match answer.json::<Problem>() {
        Ok(Problem { code, .. }) if code == "no_such_payment" => {
            Fault::not_found("the provider has no such payment")
        }
        Ok(Problem { code, message }) if code == "reference_taken" => {
            Fault::refused("duplicate-reference", message)
        }
        Ok(Problem { code, message }) => Fault::refused(&code, message),
        Err(fault) => fault,
    }
}
