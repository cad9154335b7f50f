use tollhouse_plugin::testing::{FakeHost, example_notification};
use tollhouse_plugin::types::FaultCategory;

use super::*;

const CALLBACK_URL: &str = "https://lender.example/notifications/1";

/// A host with an account at the provider, without responses.
fn account() -> FakeHost {
    FakeHost::new().manifest(MANIFEST).secret("api_key", "k3y")
}

fn start() -> Result<Session, Fault> {
    <Plugin as sessions::Guest>::start(SessionOrder {
        service_ref: "example-1".into(),
        amount: Money { minor: 500_000, currency: "KES".into() },
        email: "ada@example.com".into(),
        phone: Some("+254712345678".into()),
        customer_name: None,
        narration: "Loan 7".into(),
        channels: vec![],
        success_url: "https://shop.example/done".into(),
        cancel_url: None,
        notification_url: CALLBACK_URL.into(),
        metadata: "{}".into(),
        save_instrument: false,
    })
}

/// A payment with this state and notification data.
fn session(state: Option<Vec<u8>>, notified: Option<Vec<u8>>) -> KnownSession {
    KnownSession {
        service_ref: "example-1".into(),
        transaction_id: String::new(),
        amount: Money { minor: 500_000, currency: "KES".into() },
        started_at: "2026-01-01T09:00:00.000Z".into(),
        state,
        notified,
    }
}

fn started() -> KnownSession {
    session(Some(state::encode(&State { id: "1001".into() })), None)
}

/// A push as the provider reports it.
fn push(reference: &str, status: &str) -> serde_json::Value {
    json!({"reference": reference, "status": status, "amount": 1, "currency": "KES"})
}

fn verify(session: KnownSession) -> Result<Payment, Fault> {
    <Plugin as sessions::Guest>::verify(session)
}

fn receive(body: &[u8]) -> Result<Vec<u8>, Fault> {
    <Plugin as sessions::Guest>::receive(started(), vec![], body.to_vec())
}

#[test]
fn the_examples_succeed() {
    let _host = FakeHost::new().examples(MANIFEST).install();
    let begun = start().unwrap();
    assert!(matches!(begun.next, NextStep::Prompt(_)));
    let (_, body) = example_notification(MANIFEST);
    let payment = verify(session(Some(begun.state), Some(receive(&body).unwrap()))).unwrap();
    assert_eq!((payment.status, payment.amount.minor), (PaymentStatus::Success, 500_000));
}

#[test]
fn the_request_has_the_key_and_the_order() {
    let host = account().answer("POST", "/pushes", 201, json!({"id": "1001"})).install();
    start().unwrap();
    let sent = &host.requests()[0];
    assert_eq!(sent.url, "https://api.upstream.example/pushes");
    assert_eq!(sent.header("authorization"), Some("Bearer k3y"));
    let expected = json!({
        "reference": "example-1", "amount": 500_000, "currency": "KES", "phone": "+254712345678",
        "description": "Loan 7", "callback_url": CALLBACK_URL,
    });
    assert_eq!(sent.json(), expected);
}

#[test]
fn each_status_of_a_push_is_mapped() {
    for (text, status) in [
        ("paid", PaymentStatus::Success),
        ("declined", PaymentStatus::Failed),
        ("expired", PaymentStatus::Failed),
        ("refunded", PaymentStatus::Reversed),
        ("sent", PaymentStatus::Pending),
        ("a new word", PaymentStatus::Pending),
    ] {
        let body = push("example-1", text);
        let _host = account().answer("GET", "/pushes/1001", 200, body).install();
        assert_eq!(verify(started()).unwrap().status, status, "{text}");
    }
}

#[test]
fn a_callback_identifies_a_push_whose_response_was_lost() {
    let body = push("example-1", "paid");
    let _host = account().answer("GET", "/pushes/1001", 200, body).install();
    let fault = verify(session(None, None)).unwrap_err();
    assert_eq!(fault.category, FaultCategory::NotFound);
    let notified = receive(br#"{"id": "1001", "reference": "example-1"}"#).unwrap();
    let payment = verify(session(None, Some(notified))).unwrap();
    assert_eq!(payment.status, PaymentStatus::Success);
}

#[test]
fn a_push_of_another_payment_is_not_accepted() {
    let body = push("example-2", "paid");
    let _host = account().answer("GET", "/pushes/1001", 200, body).install();
    assert_eq!(verify(started()).unwrap_err().category, FaultCategory::Unavailable);
}

#[test]
fn a_callback_of_another_push_is_invalid() {
    for body in [&b"{}"[..], b"not JSON", br#"{"id": "1001", "reference": "example-2"}"#] {
        assert_eq!(receive(body).unwrap_err().category, FaultCategory::Invalid);
    }
}

#[test]
fn each_refusal_has_its_category() {
    for (status, code, category, expected) in [
        (401, "", FaultCategory::Misconfigured, ""),
        (404, "no_such_push", FaultCategory::NotFound, ""),
        (409, "reference_taken", FaultCategory::Refused, "duplicate-reference"),
        (422, "unsupported_phone", FaultCategory::Invalid, ""),
        (422, "too_much", FaultCategory::Refused, "too_much"),
    ] {
        let problem = json!({"code": code, "message": "no"});
        let _host = account().answer("POST", "/pushes", status, problem).install();
        let fault = start().map(|_| ()).unwrap_err();
        assert_eq!((fault.category, fault.code.as_str()), (category, expected), "{code}");
    }
}

#[test]
fn failures_of_the_provider_are_unavailable() {
    let (method, url) = ("GET", "/pushes/1001");
    for host in [
        account().timeout(method, url),
        account().no_connection(method, url),
        account().cut(method, url),
        account().answer_text(method, url, 200, "<html>"),
        account().answer_text(method, url, 404, "<html>"),
        account().answer(method, url, 429, json!({})),
        account().answer(method, url, 500, json!({})),
    ] {
        let _host = host.install();
        assert_eq!(verify(started()).unwrap_err().category, FaultCategory::Unavailable);
    }
}
