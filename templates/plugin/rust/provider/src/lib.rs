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
struct StartedPayment {
    url: String,
}

#[derive(Deserialize)]
struct FetchedPayment {
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
        let response = send(Request::post(settings::url("base_url", "/payments")?).json(&body))?;
        let StartedPayment { url } = response.json()?;
        Ok(CheckoutSession { url, service_ref: order.service_ref, raw: response.text() })
    }
}

impl verification::Guest for Plugin {
    fn verify(service_ref: String) -> Result<Payment, Fault> {
        let path = format!("/payments/{}", http::encode(&service_ref));
        let response = send(Request::get(settings::url("base_url", &path)?))?;
        let payment: FetchedPayment = response.json()?;
        Ok(Payment {
            // Unknown statuses are pending: they prove neither success nor failure.
            status: match payment.status.as_str() {
                "paid" => PaymentStatus::Success,
                "declined" => PaymentStatus::Failed,
                "refunded" => PaymentStatus::Reversed,
                _ => PaymentStatus::Pending,
            },
            service_ref,
            transaction_id: payment.id,
            amount: Money { minor: payment.amount, currency: payment.currency },
            requested: None,
            fees_minor: None,
            channel: "card".into(),
            paid_at: None,
            message: String::new(),
            instrument: None,
            challenge_url: None,
            metadata: payment.metadata.map(|metadata| metadata.to_string()),
            raw: response.text(),
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
    let response = request.bearer(&vault::secret("api_key")?).send()?;
    match response.status {
        200..300 => Ok(response),
        401 | 403 => Err(Fault::misconfigured("the provider does not accept the key")),
        400 | 404 | 409 | 422 => Err(refusal(&response)),
        status => Err(Fault::unavailable(format!("the provider returned {status}"))),
    }
}

/// Only the provider itself can refuse: an error page from an intermediary counts as an outage.
fn refusal(response: &Response) -> Fault {
    match response.json::<Problem>() {
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
