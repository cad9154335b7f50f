use serde_json::{Value, json};
use tollhouse_plugin::checkout::{CheckoutOrder, CheckoutSession, Guest};
use tollhouse_plugin::types::{Fault, FaultCategory};

use super::{host, naira, parsed, success};
use crate::Paystack;

fn order() -> CheckoutOrder {
    CheckoutOrder {
        service_ref: "re4lyvq3s3".into(),
        amount: naira(40333),
        email: "demo@test.com".into(),
        customer_name: Some("Demo".into()),
        narration: "Loan".into(),
        channels: vec![],
        success_url: "https://shop.test/done".into(),
        cancel_url: None,
        metadata: r#"{"order":7}"#.into(),
        save_instrument: false,
    }
}

fn page() -> Value {
    success(json!({
        "authorization_url": "https://checkout.paystack.com/3ni8",
        "access_code": "3ni8kdavz62431k",
        "reference": "re4lyvq3s3"
    }))
}

/// Opens a session; returns it and the body sent.
fn start(order: CheckoutOrder) -> (CheckoutSession, Value) {
    let host = host().answer("POST", "https://api.paystack.co/transaction/initialize", 200, page());
    let host = host.install();
    let session = Paystack::start(order).unwrap();
    let sent = &host.requests()[0];
    assert_eq!(sent.header("authorization"), Some("Bearer sk_test_abc123"));
    assert_eq!(sent.header("content-type"), Some("application/json"));
    (session, sent.json())
}

#[test]
fn a_session_is_opened() {
    let (session, sent) = start(order());
    let wanted = json!({
        "email": "demo@test.com", "amount": 40333, "currency": "NGN", "reference": "re4lyvq3s3",
        "callback_url": "https://shop.test/done", "metadata": {"order": 7},
    });
    assert_eq!(sent, wanted);
    assert_eq!(session.url, "https://checkout.paystack.com/3ni8");
    assert_eq!(session.service_ref, "re4lyvq3s3");
}

#[test]
fn the_access_code_stays_out_of_raw() {
    let raw = parsed(&start(order()).0.raw);
    assert_eq!(raw["reference"], "re4lyvq3s3");
    assert!(raw["access_code"].is_null());
}

#[test]
fn options_are_sent_where_paystack_reads_them() {
    let (_, sent) = start(CheckoutOrder {
        channels: vec!["card".into(), "ussd".into()],
        cancel_url: Some("https://shop.test/left".into()),
        save_instrument: true,
        ..order()
    });
    assert_eq!(sent["channels"], json!(["card", "ussd"]));
    let metadata = json!({
        "order": 7,
        "cancel_action": "https://shop.test/left",
        "custom_filters": {"recurring": true},
    });
    assert_eq!(sent["metadata"], metadata);
}

#[test]
fn filters_of_the_caller_are_kept() {
    let filters = |metadata: Value| {
        let order =
            CheckoutOrder { metadata: metadata.to_string(), save_instrument: true, ..order() };
        start(order).1["metadata"]["custom_filters"].clone()
    };
    let kept = filters(json!({"custom_filters": {"banks": ["057"]}}));
    assert_eq!(kept, json!({"banks": ["057"], "recurring": true}));
    assert_eq!(filters(json!({"custom_filters": "odd"})), json!({"recurring": true}));
}

#[test]
fn empty_metadata_is_an_object_and_other_types_are_refused_unsent() {
    let (_, sent) = start(CheckoutOrder { metadata: String::new(), ..order() });
    assert_eq!(sent["metadata"], json!({}));
    let host = host().install();
    let fault = Paystack::start(CheckoutOrder { metadata: "[]".into(), ..order() }).unwrap_err();
    assert_eq!((fault.category, fault.field()), (FaultCategory::Invalid, Some("metadata")));
    assert!(host.requests().is_empty());
}

#[test]
fn a_base_url_with_a_slash_does_not_double_it() {
    let host = host().setting("base_url", "http://127.0.0.1:9/paystack/");
    let host =
        host.answer("POST", "http://127.0.0.1:9/paystack/transaction/initialize", 200, page());
    let _host = host.install();
    assert!(Paystack::start(order()).is_ok());
}

fn start_with_response(status: u16, response: Value) -> Fault {
    let _host = host().answer("POST", "/transaction/initialize", status, response).install();
    Paystack::start(order()).unwrap_err()
}

#[test]
fn a_used_reference_is_refused_as_duplicate() {
    let coded = json!({"status": false, "message": "Duplicate Transaction Reference",
        "type": "validation_error", "code": "duplicate_reference"});
    let older = json!({"status": false, "message": "Duplicate Transaction Reference"});
    for response in [coded, older] {
        let fault = start_with_response(400, response);
        assert_eq!(fault.category, FaultCategory::Refused);
        assert_eq!(fault.code, "duplicate-reference");
        assert!(!fault.retryable);
    }
}

#[test]
fn a_success_without_a_page_is_unavailable() {
    let fault = start_with_response(200, success(json!({"reference": "re4lyvq3s3"})));
    assert_eq!((fault.category, fault.retryable), (FaultCategory::Unavailable, true));
}
