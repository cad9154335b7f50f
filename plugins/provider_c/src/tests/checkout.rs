use serde_json::{Value, json};
use tollhouse_plugin::checkout::{CheckoutOrder, CheckoutSession, Guest};
use tollhouse_plugin::testing::FakeHost;
use tollhouse_plugin::types::{Fault, FaultCategory, Money};

use super::{host, naira, parsed, refused, success};
use crate::{Monnify, channels};

const PATH: &str = "https://api.monnify.com/api/v1/merchant/transactions/init-transaction";
const PAGE: &str = "https://sandbox.sdk.monnify.com/checkout/MNFY%7C20220121%7C000001";

fn order() -> CheckoutOrder {
    CheckoutOrder {
        service_ref: "pay-1".into(),
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

fn page() -> Value {
    success(json!({
        "transactionReference": "MNFY|20220121154928|000001", "paymentReference": "pay-1",
        "merchantName": "Demo", "apiKey": "MK_TEST_SAF7HR5F3F", "enabledPaymentMethod": ["CARD"],
        "checkoutUrl": PAGE,
    }))
}

/// Opens a session; returns it and the body sent.
fn start(order: CheckoutOrder) -> (CheckoutSession, Value) {
    let host = host().answer("POST", PATH, 200, page()).install();
    let session = Monnify::start(order).unwrap();
    let sent = &host.requests()[0];
    assert_eq!(sent.header("authorization"), Some("Bearer t0k3n"));
    assert_eq!(sent.header("content-type"), Some("application/json"));
    (session, sent.json())
}

#[test]
fn a_session_is_opened() {
    let (session, sent) = start(order());
    let wanted = json!({
        "amount": 403.33, "customerName": "Demo", "customerEmail": "demo@test.com",
        "paymentReference": "pay-1", "paymentDescription": "Loan", "currencyCode": "NGN",
        "contractCode": "5867418298", "redirectUrl": "https://shop.test/done",
        "metaData": {"order": 7},
    });
    assert_eq!(sent, wanted);
    assert_eq!((session.url.as_str(), session.service_ref.as_str()), (PAGE, "pay-1"));
}

#[test]
fn raw_omits_the_accounts_key() {
    let raw = parsed(&start(order()).0.raw);
    assert_eq!(raw["merchantName"], "Demo");
    assert!(raw["apiKey"].is_null());
}

#[test]
fn channels_become_payment_methods() {
    let all = ["card", "bank", "ussd", "qr", "mobile_money", "bank_transfer"];
    for (channels, save, methods) in [
        (&all[..0], false, json!(null)),
        (&all[..], false, json!(["CARD", "DIRECT_DEBIT", "USSD", "ACCOUNT_TRANSFER"])),
        (&["ussd", "qr"], false, json!(["USSD"])),
        (&all[..0], true, json!(["CARD"])),
        (&all[..], true, json!(["CARD"])),
    ] {
        let channels = channels.iter().map(|name| (*name).to_owned()).collect();
        let (_, sent) = start(CheckoutOrder { channels, save_instrument: save, ..order() });
        assert_eq!(sent["paymentMethods"], methods);
    }
}

#[test]
fn payment_methods_map_to_the_contracts_channels() {
    for (value, ours) in [
        ("CARD", "card"),
        ("ACCOUNT_TRANSFER", "bank_transfer"),
        ("USSD", "ussd"),
        ("DIRECT_DEBIT", "bank"),
        ("PHONE_NUMBER", "phone_number"),
        ("", ""),
    ] {
        assert_eq!(channels::channel_name(value), ours);
    }
}

#[test]
fn an_invalid_order_is_not_sent() {
    let dollars = Money { minor: 100, currency: "USD".into() };
    for (order, field) in [
        (CheckoutOrder { metadata: "[]".into(), ..order() }, "metadata"),
        (CheckoutOrder { amount: dollars, ..order() }, "currency"),
        (
            CheckoutOrder { channels: vec!["qr".into(), "mobile_money".into()], ..order() },
            "channels",
        ),
        (
            CheckoutOrder { channels: vec!["ussd".into()], save_instrument: true, ..order() },
            "channels",
        ),
    ] {
        let host = host().install();
        let fault = Monnify::start(order).unwrap_err();
        assert_eq!((fault.category, fault.field()), (FaultCategory::Invalid, Some(field)));
        assert!(host.requests().is_empty());
    }
}

#[test]
fn an_account_without_a_contract_is_misconfigured() {
    let host = FakeHost::new().manifest(crate::MANIFEST).install();
    let fault = Monnify::start(order()).unwrap_err();
    assert_eq!(fault.category, FaultCategory::Misconfigured);
    assert!(host.requests().is_empty());
}

fn start_with_response(status: u16, response: Value) -> Fault {
    let _host = host().answer("POST", PATH, status, response).install();
    Monnify::start(order()).unwrap_err()
}

#[test]
fn a_used_reference_is_refused_as_duplicate() {
    for (status, message) in [
        (400, "Duplicate payment reference"),
        (422, "DUPLICATE_REFERENCE"),
        (400, "Payment reference has been used"),
        (400, "paymentReference already exists"),
        (422, "Reference already used"),
    ] {
        let fault = start_with_response(status, refused("99", message));
        assert_eq!(fault.category, FaultCategory::Refused);
        assert_eq!((fault.code.as_str(), fault.retryable), ("duplicate-reference", false));
    }
}

#[test]
fn a_success_without_a_page_is_unavailable() {
    for body in [json!(null), json!({}), json!({"checkoutUrl": null})] {
        let fault = start_with_response(200, success(body));
        assert_eq!((fault.category, fault.retryable), (FaultCategory::Unavailable, true));
    }
}
