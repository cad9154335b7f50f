//! A payment provider with push payments: the payer confirms on a phone.

use serde::{Deserialize, Serialize};
use serde_json::json;
use tollhouse_plugin::http::{self, Request, Response};
use tollhouse_plugin::payments::{KnownSession, Payment, PaymentStatus};
use tollhouse_plugin::sessions::{self, NextStep, Session, SessionOrder};
use tollhouse_plugin::types::{Fault, Money};
use tollhouse_plugin::{settings, state, vault};

#[cfg(test)]
mod tests;

/// The plugin.
#[derive(Debug)]
pub struct Plugin;

tollhouse_plugin::export!(Plugin: sessions);

/// The state of a session: the provider's id, without which a push cannot be queried.
#[derive(Deserialize, Serialize)]
struct State {
    id: String,
}

#[derive(Deserialize)]
struct FetchedPush {
    reference: String,
    status: String,
    amount: u64,
    currency: String,
}

#[derive(Deserialize)]
struct Callback {
    id: String,
    reference: String,
}

/// An error from the provider.
#[derive(Deserialize)]
struct Problem {
    code: String,
    message: String,
}

impl sessions::Guest for Plugin {
    fn start(order: SessionOrder) -> Result<Session, Fault> {
        let body = json!({
            "reference": order.service_ref,
            "amount": order.amount.minor,
            "currency": order.amount.currency,
            "phone": order.phone,
            "description": order.narration,
            "callback_url": order.notification_url,
        });
        let response = send(Request::post(settings::url("base_url", "/pushes")?).json(&body))?;
        let state: State = response.json()?;
        Ok(Session {
            next: NextStep::Prompt("Enter your PIN on your phone to confirm the payment.".into()),
            service_ref: order.service_ref,
            state: state::encode(&state),
            raw: response.text(),
        })
    }

    fn verify(session: KnownSession) -> Result<Payment, Fault> {
        // If the response of `start` was lost, only a callback has the id.
        let known = [&session.state, &session.notified].into_iter();
        let Some(State { id }) = known.filter_map(|data| state::decode(data.as_ref())).next()
        else {
            return Err(Fault::not_found("the provider's id of the push is not known"));
        };
        let path = format!("/pushes/{}", http::encode(&id));
        let response = send(Request::get(settings::url("base_url", &path)?))?;
        let push: FetchedPush = response.json()?;
        if push.reference != session.service_ref {
            return Err(Fault::unavailable("the provider returned another payment's push"));
        }
        Ok(Payment {
            // Unknown statuses are pending: they prove neither success nor failure.
            status: match push.status.as_str() {
                "paid" => PaymentStatus::Success,
                "declined" | "expired" => PaymentStatus::Failed,
                "refunded" => PaymentStatus::Reversed,
                _ => PaymentStatus::Pending,
            },
            service_ref: session.service_ref,
            transaction_id: id,
            amount: Money { minor: push.amount, currency: push.currency },
            requested: None,
            fees_minor: None,
            channel: "mobile_money".into(),
            paid_at: None,
            message: String::new(),
            instrument: None,
            challenge_url: None,
            metadata: None,
            raw: response.text(),
        })
    }

    /// Callbacks are not signed: only the id is read from them, and `verify` checks that the push
    /// with this id belongs to this payment.
    fn receive(
        session: KnownSession,
        _headers: Vec<(String, String)>,
        body: Vec<u8>,
    ) -> Result<Vec<u8>, Fault> {
        let Callback { id, reference } = serde_json::from_slice(&body)
            .map_err(|_| Fault::invalid("body", "the body is not a callback of the provider"))?;
        if reference != session.service_ref {
            return Err(Fault::invalid("body", "the callback is that of another push"));
        }
        Ok(state::encode(&State { id }))
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
        Ok(Problem { code, .. }) if code == "no_such_push" => {
            Fault::not_found("the provider has no such push")
        }
        Ok(Problem { code, message }) if code == "reference_taken" => {
            Fault::refused("duplicate-reference", message)
        }
        Ok(Problem { code, message }) if code == "unsupported_phone" => {
            Fault::invalid("phone", message).with_cause("unsupported-number")
        }
        Ok(Problem { code, message }) => Fault::refused(&code, message),
        Err(fault) => fault,
    }
}
