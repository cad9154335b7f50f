use serde_json::{Value, json};
use tollhouse_plugin::checkout::{CheckoutOrder, CheckoutSession, Guest};
use tollhouse_plugin::types::{Fault, FaultCategory};

use super::{host, naira, parsed, refused, success};
use crate::Flutterwave;

const LINK: &str = "https://checkout.flutterwave.com/v3/hosted/pay/8d1d7d";

pub(super) fn order() -> CheckoutOrder {
    CheckoutOrder {
        service_ref: "3456787654".into(),
        amount: naira(40333),
        email: "demo@test.com".into(),
        customer_name: Some("Demo".into()),
        narration: "Loan".into(),
        channels: vec![],
        success_url: "https://shop.test/done".into(),
        cancel_url: Some("https://shop.test/left".into()),
        metadata: r#"{"order":7}"#.into(),
        save_instrument: false,
    }
}

/// Opens a session; returns it and the body sent.
fn start(order: CheckoutOrder) -> (CheckoutSession, Value) {
    let page = success(json!({"link": LINK}));
    let host = host().answer("POST", "https://api.flutterwave.com/v3/payments", 200, page);
    let host = host.install();
    let session = Flutterwave::start(order).unwrap();
    let sent = &host.requests()[0];
    assert_eq!(sent.header("authorization"), Some("Bearer FLWSECK_TEST-abc123-X"));
    assert_eq!(sent.header("content-type"), Some("application/json"));
    (session, sent.json())
}

#[test]
fn a_session_is_opened() {
    let (session, sent) = start(order());
    let wanted = json!({
        "tx_ref": "3456787654", "amount": 403.33, "currency": "NGN",
        "redirect_url": "https://shop.test/done",
        "customer": {"email": "demo@test.com", "name": "Demo"},
        "customizations": {"description": "Loan"}, "meta": {"order": 7},
    });
    assert_eq!(sent, wanted);
    assert_eq!((session.url.as_str(), session.service_ref.as_str()), (LINK, "3456787654"));
    assert_eq!(parsed(&session.raw), json!({"link": LINK}));
}

#[test]
fn payment_options_are_one_string() {
    let channels = vec!["card".into(), "qr".into()];
    let (_, sent) = start(CheckoutOrder { channels, customer_name: None, ..order() });
    assert_eq!(sent["payment_options"], "card,nqr");
    assert_eq!(sent["customer"], json!({"email": "demo@test.com"}));
    let (_, sent) = start(CheckoutOrder { save_instrument: true, ..order() });
    assert_eq!(sent["payment_options"], "card");
}

#[test]
fn an_invalid_order_is_not_sent() {
    for (order, field) in [
        (CheckoutOrder { metadata: "[]".into(), ..order() }, "metadata"),
        (CheckoutOrder { channels: vec!["mobile_money".into()], ..order() }, "channels"),
    ] {
        let host = host().install();
        let fault = Flutterwave::start(order).unwrap_err();
        assert_eq!((fault.category, fault.field()), (FaultCategory::Invalid, Some(field)));
        assert!(host.requests().is_empty());
    }
}

#[test]
fn a_base_url_keeps_its_path() {
    let host = host().setting("base_url", "http://127.0.0.1:9/flutterwave/v3/");
    let page = success(json!({"link": LINK}));
    let _host =
        host.answer("POST", "http://127.0.0.1:9/flutterwave/v3/payments", 200, page).install();
    assert!(Flutterwave::start(order()).is_ok());
}

fn start_with_response(status: u16, response: Value) -> Fault {
    let _host = host().answer("POST", "/payments", status, response).install();
    Flutterwave::start(order()).unwrap_err()
}

/// The message varies, and there is no code.
#[test]
fn a_used_reference_is_refused_as_duplicate() {
    for message in [
        "Duplicate transaction reference",
        "DUPLICATE_TX_REF",
        "Transaction reference has been used before",
        "tx_ref already exists",
    ] {
        let fault = start_with_response(400, refused(message));
        assert_eq!(fault.category, FaultCategory::Refused);
        assert_eq!((fault.code.as_str(), fault.retryable), ("duplicate-reference", false));
    }
}

#[test]
fn a_success_without_a_page_is_unavailable() {
    for data in [json!(null), json!({}), json!({"link": null})] {
        let fault = start_with_response(200, success(data));
        assert_eq!((fault.category, fault.retryable), (FaultCategory::Unavailable, true));
    }
}
