//! A minimal provider: hosted checkout, verification and webhooks.

use serde::Deserialize;
use serde_json::{Value, json};
use tollhouse_plugin::checkout::{self, CheckoutOrder, CheckoutSession};
use tollhouse_plugin::http::{self, Request, Response};
use tollhouse_plugin::notifications::{self, Notification, Refusal, Subject};
use tollhouse_plugin::payments::{Payment, PaymentStatus};
use tollhouse_plugin::types::{Fault, Money};
use tollhouse_plugin::{settings, vault, verification};

/// The plugin.
#[derive(Debug)]
pub struct Sprout;

tollhouse_plugin::export!(Sprout: checkout, verification, notifications);

#[derive(Deserialize)]
struct Page {
    url: String,
}

#[derive(Deserialize)]
struct Session {
    status: String,
    amount: u64,
    currency: String,
}

#[derive(Deserialize)]
struct Event {
    r#ref: String,
}

impl checkout::Guest for Sprout {
    fn start(order: CheckoutOrder) -> Result<CheckoutSession, Fault> {
        let CheckoutOrder { service_ref, amount, success_url, .. } = order;
        let body = json!({
            "ref": service_ref, "amount": amount.minor, "currency": amount.currency, "return_to": success_url,
        });
        let response = send(Request::post(settings::url("base_url", "/sessions")?).json(&body))?;
        let page: Page = response.json()?;
        Ok(CheckoutSession { url: page.url, service_ref, raw: response.text() })
    }
}

impl verification::Guest for Sprout {
    fn verify(service_ref: String) -> Result<Payment, Fault> {
        let path = format!("/sessions/{}", http::encode(&service_ref));
        let response = send(Request::get(settings::url("base_url", &path)?))?;
        let session: Session = response.json()?;
        Ok(Payment {
            status: match session.status.as_str() {
                "paid" => PaymentStatus::Success,
                "declined" => PaymentStatus::Failed,
                _ => PaymentStatus::Pending,
            },
            service_ref,
            transaction_id: String::new(),
            amount: Money { minor: session.amount, currency: session.currency },
            requested: None,
            fees_minor: None,
            channel: "card".into(),
            paid_at: None,
            message: String::new(),
            instrument: None,
            challenge_url: None,
            metadata: None,
            raw: response.text(),
        })
    }
}

impl notifications::Guest for Sprout {
    fn parse(headers: Vec<(String, String)>, body: Vec<u8>) -> Result<Vec<Notification>, Refusal> {
        let token = http::header(&headers, "x-sprout-token").unwrap_or_default();
        if !vault::matches("token", token.as_bytes()).unwrap_or(false) {
            return Err(Refusal::Unauthentic);
        }
        let event: Event = serde_json::from_slice(&body)
            .map_err(|_| Refusal::Malformed("not a Sprout event".into()))?;
        Ok(vec![Notification {
            subject: Subject::Payment,
            event: "session".into(),
            service_ref: event.r#ref,
            transaction_id: String::new(),
        }])
    }
}

/// Sends a request with the account's token, and maps a status other than 200 to a fault.
fn send(request: Request) -> Result<Response, Fault> {
    let response = request.bearer(&vault::secret("token")?).send()?;
    match response.status {
        200 => Ok(response),
        401 | 403 => Err(Fault::misconfigured("Sprout does not accept the token")),
        status @ (408 | 429 | 500..) => {
            Err(Fault::unavailable(format!("Sprout returned {status}")))
        }
        // A body that is not JSON does not come from Sprout's API: `unavailable`.
        status => Err(response.json::<Value>().map_or_else(
            |unreadable| unreadable,
            |_| match status {
                404 => Fault::not_found("Sprout has no such session"),
                _ => Fault::refused("", "Sprout refused the session"),
            },
        )),
    }
}

#[cfg(test)]
mod tests {
    use tollhouse_plugin::testing::FakeHost;

    use super::*;

    fn host() -> FakeHost {
        FakeHost::new().secret("token", "t0p").setting("base_url", "https://sprout.test")
    }

    fn verify(status: u16, body: Value) -> Result<Payment, Fault> {
        let host = host().answer("GET", "/sessions/S-1", status, body).install();
        let verified = <Sprout as verification::Guest>::verify("S-1".into());
        assert_eq!(host.requests()[0].header("authorization"), Some("Bearer t0p"));
        verified
    }

    #[test]
    fn checkout_returns_the_session_url() {
        let host = host().answer("POST", "/sessions", 200, json!({"url": "https://p"})).install();
        let order = CheckoutOrder {
            service_ref: "S-1".into(),
            amount: Money { minor: 700, currency: "KES".into() },
            email: "ada@example.com".into(),
            customer_name: None,
            narration: String::new(),
            channels: vec![],
            success_url: "https://shop.test".into(),
            cancel_url: None,
            metadata: "{}".into(),
            save_instrument: false,
        };
        assert_eq!(<Sprout as checkout::Guest>::start(order).unwrap().url, "https://p");
        let expected = json!({"ref": "S-1", "amount": 700, "currency": "KES", "return_to": "https://shop.test"});
        assert_eq!(host.requests()[0].json(), expected);
    }

    #[test]
    fn statuses_are_mapped() {
        for (reported, status) in [
            ("paid", PaymentStatus::Success),
            ("declined", PaymentStatus::Failed),
            ("open", PaymentStatus::Pending),
        ] {
            let session = json!({"status": reported, "amount": 700, "currency": "KES"});
            assert_eq!(verify(200, session).unwrap().status, status);
        }
        assert_eq!(verify(404, json!({})), Err(Fault::not_found("Sprout has no such session")));
        assert!(verify(429, json!({})).unwrap_err().retryable);
        assert!(verify(500, json!({})).unwrap_err().retryable);
    }

    #[test]
    fn a_404_that_is_not_json_is_unavailable() {
        let page = "<html>Not found</html>";
        for status in [400, 404, 418] {
            let host = host().answer_text("GET", "/sessions/S-1", status, page).install();
            let fault = <Sprout as verification::Guest>::verify("S-1".into()).unwrap_err();
            assert_eq!((fault.code.as_str(), fault.retryable), ("unexpected-answer", true));
            assert_eq!(host.requests().len(), 1);
        }
    }

    #[test]
    fn webhooks_without_the_token_are_unauthentic() {
        let _host = host().install();
        let parse = |token: &str| {
            let headers = vec![("x-sprout-token".to_owned(), token.to_owned())];
            <Sprout as notifications::Guest>::parse(headers, br#"{"ref":"S-1"}"#.to_vec())
        };
        assert_eq!(parse("t0p").unwrap()[0].service_ref, "S-1");
        assert_eq!(parse("guess").unwrap_err(), Refusal::Unauthentic);
    }
}
