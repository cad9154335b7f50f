//! A minimal provider with sessions whose payers pay on a page: Sprout's protocol, but a session is
//! identified by the id in the URL of its page.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tollhouse_plugin::http::{self, Request, Response};
use tollhouse_plugin::payments::{KnownSession, Payment, PaymentStatus};
use tollhouse_plugin::sessions::{self, NextStep, Session, SessionOrder};
use tollhouse_plugin::types::{Fault, Money};
use tollhouse_plugin::{settings, state, vault};

/// The plugin.
#[derive(Debug)]
pub struct Sapling;

tollhouse_plugin::export!(Sapling: sessions);

#[derive(Deserialize)]
struct Page {
    url: String,
}

/// The format of the state, of the stored notification data, and of a notification's body.
#[derive(Deserialize, Serialize)]
struct State {
    id: String,
    /// The number of notifications.
    #[serde(default)]
    count: u32,
}

#[derive(Deserialize)]
struct Fetched {
    status: String,
    amount: u64,
    currency: String,
}

impl sessions::Guest for Sapling {
    fn start(order: SessionOrder) -> Result<Session, Fault> {
        let body = json!({
            "ref": order.service_ref, "amount": order.amount.minor,
            "currency": order.amount.currency, "return_to": order.success_url,
            "notify": order.notification_url,
        });
        let response = send(Request::post(settings::url("base_url", "/sessions")?).json(&body))?;
        let Page { url } = response.json()?;
        let id = url.rsplit('/').next().unwrap_or_default().to_owned();
        Ok(Session {
            next: NextStep::Page(url),
            service_ref: order.service_ref,
            state: state::encode(&State { id, count: 0 }),
            raw: response.text(),
        })
    }

    fn verify(session: KnownSession) -> Result<Payment, Fault> {
        let known = [&session.notified, &session.state].into_iter();
        let Some(State { id, count }) =
            known.filter_map(|data| state::decode(data.as_ref())).next()
        else {
            return Err(Fault::not_found("the id of the session is not known"));
        };
        let path = format!("/sessions/{}", http::encode(&id));
        let response = send(Request::get(settings::url("base_url", &path)?))?;
        let fetched: Fetched = response.json()?;
        Ok(Payment {
            status: match fetched.status.as_str() {
                "paid" => PaymentStatus::Success,
                "declined" => PaymentStatus::Failed,
                _ => PaymentStatus::Pending,
            },
            service_ref: session.service_ref,
            transaction_id: id,
            amount: Money { minor: fetched.amount, currency: fetched.currency },
            requested: None,
            fees_minor: None,
            channel: "card".into(),
            paid_at: None,
            message: String::new(),
            instrument: None,
            challenge_url: None,
            metadata: None,
            raw: json!({ "notifications": count }).to_string(),
        })
    }

    fn receive(
        session: KnownSession,
        _headers: Vec<(String, String)>,
        body: Vec<u8>,
    ) -> Result<Vec<u8>, Fault> {
        let State { id, .. } = serde_json::from_slice(&body)
            .map_err(|_| Fault::invalid("body", "not a Sprout event"))?;
        let earlier = state::decode(session.notified.as_ref());
        let count = earlier.map_or(0, |earlier: State| earlier.count) + 1;
        Ok(state::encode(&State { id, count }))
    }
}

/// Sends a request with the account's token, and maps a status other than 200 to a fault.
fn send(request: Request) -> Result<Response, Fault> {
    let response = request.bearer(&vault::secret("token")?).send()?;
    match response.status {
        200 => Ok(response),
        401 | 403 => Err(Fault::misconfigured("Sprout does not accept the token")),
        400 | 404 | 422 => {
            response.json::<Value>()?;
            match response.status {
                404 => Err(Fault::not_found("Sprout has no such session")),
                _ => Err(Fault::refused("", "Sprout refused the session")),
            }
        }
        status => Err(Fault::unavailable(format!("Sprout returned {status}"))),
    }
}
