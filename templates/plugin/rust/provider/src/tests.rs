use tollhouse_plugin::testing::{FakeHost, example_notification};
use tollhouse_plugin::types::FaultCategory;

use super::*;

/// A host with an account at the provider, without responses.
fn account() -> FakeHost {
    FakeHost::new().manifest(MANIFEST).secret("api_key", "k3y").secret("webhook_secret", "s3cret")
}

fn start() -> Result<CheckoutSession, Fault> {
    <Plugin as checkout::Guest>::start(CheckoutOrder {
        service_ref: "example-1".into(),
        amount: Money { minor: 500_000, currency: "NGN".into() },
        email: "ada@example.com".into(),
        customer_name: None,
        narration: String::new(),
        channels: vec![],
        success_url: "https://shop.example/done".into(),
        cancel_url: None,
        metadata: r#"{"order":"1"}"#.into(),
        save_instrument: false,
    })
}

fn verify() -> Result<Payment, Fault> {
    <Plugin as verification::Guest>::verify("example-1".into())
}

fn parse(headers: Vec<(String, String)>, body: Vec<u8>) -> Result<Vec<Notification>, Refusal> {
    <Plugin as notifications::Guest>::parse(headers, body)
}

#[test]
fn the_examples_succeed() {
    let _host = FakeHost::new().examples(MANIFEST).install();
    assert_eq!(start().unwrap().url, "https://pay.upstream.example/1001");
    let payment = verify().unwrap();
    assert_eq!((payment.status, payment.amount.minor), (PaymentStatus::Success, 500_000));
    assert_eq!(payment.metadata.unwrap(), r#"{"order":"1"}"#);
    let (headers, body) = example_notification(MANIFEST);
    assert_eq!(parse(headers, body).unwrap()[0].service_ref, "example-1");
}

#[test]
fn the_request_has_the_key_and_the_order() {
    let host = account().answer("POST", "/payments", 201, json!({"url": "https://p"})).install();
    start().unwrap();
    let sent = &host.requests()[0];
    assert_eq!(sent.url, "https://api.upstream.example/payments");
    assert_eq!(sent.header("authorization"), Some("Bearer k3y"));
    let asked = sent.json();
    assert_eq!((&asked["amount"], &asked["currency"]), (&json!(500_000), &json!("NGN")));
    assert_eq!(
        (&asked["reference"], &asked["metadata"]),
        (&json!("example-1"), &json!({"order": "1"}))
    );
}

#[test]
fn each_status_of_a_payment_is_mapped() {
    for (text, status) in [
        ("paid", PaymentStatus::Success),
        ("declined", PaymentStatus::Failed),
        ("refunded", PaymentStatus::Reversed),
        ("open", PaymentStatus::Pending),
        ("a new word", PaymentStatus::Pending),
    ] {
        let body = json!({"id": "1", "status": text, "amount": 1, "currency": "NGN"});
        let _host = account().answer("GET", "/payments/example-1", 200, body).install();
        assert_eq!(verify().unwrap().status, status, "{text}");
    }
}

#[test]
fn each_refusal_has_its_category() {
    for (status, code, category, expected) in [
        (401, "", FaultCategory::Misconfigured, ""),
        (404, "no_such_payment", FaultCategory::NotFound, ""),
        (409, "reference_taken", FaultCategory::Refused, "duplicate-reference"),
        (422, "too_much", FaultCategory::Refused, "too_much"),
    ] {
        let problem = json!({"code": code, "message": "no"});
        let _host = account().answer("POST", "/payments", status, problem).install();
        let fault = start().unwrap_err();
        assert_eq!((fault.category, fault.code.as_str()), (category, expected), "{status}");
    }
}

#[test]
fn failures_of_the_provider_are_unavailable() {
    let (method, url) = ("GET", "/payments/example-1");
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
        assert_eq!(verify().unwrap_err().category, FaultCategory::Unavailable);
    }
}

#[test]
fn a_webhook_without_a_valid_signature_is_unauthentic() {
    let _host = FakeHost::new().examples(MANIFEST).install();
    let (headers, body) = example_notification(MANIFEST);
    let changed = [&body[..], b" "].concat();
    for (headers, body) in [(vec![], body.clone()), (headers, changed)] {
        assert_eq!(parse(headers, body), Err(Refusal::Unauthentic));
    }
}
