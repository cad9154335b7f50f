use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tollhouse_plugin::sessions::{Guest, NextStep};
use tollhouse_plugin::types::Money;

use super::{
    LOGIN, NOTIFICATION_URL, PUSH, accepted, describe, error, host, order, shillings, stranger,
};
use crate::Mpesa;

#[test]
fn the_payer_is_asked_on_the_phone() {
    let host = host().answer("POST", PUSH, 200, accepted()).install();
    let session = Mpesa::start(order()).unwrap();
    assert!(matches!(session.next, NextStep::Prompt(_)));
    assert_eq!(session.service_ref, "pay1");
    let state: Value = serde_json::from_slice(&session.state).unwrap();
    assert_eq!(state["checkout_request_id"], accepted()["CheckoutRequestID"]);
    let sent = &host.requests()[0];
    assert_eq!(sent.header("authorization"), Some("Bearer t0k3n"));
    let mut body = sent.json();
    let timestamp = body["Timestamp"].as_str().unwrap().to_owned();
    let password = STANDARD.decode(body["Password"].as_str().unwrap()).unwrap();
    assert_eq!(password, format!("174379bfb279f9{timestamp}").into_bytes());
    assert_eq!(timestamp.len(), 14);
    for name in ["Timestamp", "Password"] {
        body[name].take();
    }
    let expected = json!({
        "BusinessShortCode": "174379", "Password": null, "Timestamp": null,
        "TransactionType": "CustomerPayBillOnline", "Amount": 10, "PartyA": "254708374149",
        "PartyB": "174379", "PhoneNumber": "254708374149", "CallBackURL": NOTIFICATION_URL,
        "AccountReference": "pay1", "TransactionDesc": "Loan of Ada 7",
    });
    assert_eq!(body, expected);
}

#[test]
fn a_till_receives_the_payment_if_one_is_set() {
    let host = host().setting("till", "5551234").answer("POST", PUSH, 200, accepted()).install();
    Mpesa::start(order()).unwrap();
    let body = host.requests()[0].json();
    let fields = ["TransactionType", "PartyB", "BusinessShortCode"].map(|name| body[name].clone());
    assert_eq!(fields, ["CustomerBuyGoodsOnline", "5551234", "174379"].map(Value::from));
}

#[test]
fn orders_that_daraja_cannot_serve_are_invalid() {
    let _host = host().install();
    let phone = |phone: Option<&str>| {
        let order =
            tollhouse_plugin::sessions::SessionOrder { phone: phone.map(str::to_owned), ..order() };
        describe(&Mpesa::start(order).unwrap_err())
    };
    for bad in [None, Some("+2348012345678"), Some("254708374149"), Some("+25470837414")] {
        assert_eq!(phone(bad), "FaultCategory::Invalid  unsupported-number", "{bad:?}");
    }
    let amount = |amount: Money| {
        let order = tollhouse_plugin::sessions::SessionOrder { amount, ..order() };
        describe(&Mpesa::start(order).unwrap_err())
    };
    let (cents, dollars) = (Money { minor: 1_050, ..shillings(0) }, "USD".to_owned());
    assert_eq!(amount(cents), "FaultCategory::Invalid  amount-step");
    assert_eq!(
        amount(Money { currency: dollars, ..shillings(10) }),
        "FaultCategory::Invalid  unsupported-currency"
    );
}

#[test]
fn errors_are_distinguished_by_their_words() {
    let busy = "Unable to lock subscriber, a transaction is already in process";
    for (status, body, expected) in [
        (500, error("500.001.1001", busy), "FaultCategory::Refused 500.001.1001 payer-busy"),
        (
            500,
            error("500.001.1001", "Wrong credentials"),
            "FaultCategory::Misconfigured 500.001.1001 ",
        ),
        (
            500,
            error("500.001.1001", "[MerchantValidate] - Merchant does not exist"),
            "FaultCategory::Misconfigured 500.001.1001 ",
        ),
        (
            400,
            error("400.002.02", "Bad Request - Invalid PhoneNumber"),
            "FaultCategory::Invalid 400.002.02 unsupported-number",
        ),
        (
            400,
            error("400.002.02", "Bad Request - Invalid Amount"),
            "FaultCategory::Invalid 400.002.02 amount",
        ),
        (
            400,
            error("400.002.02", "Bad Request - Invalid CallBackURL"),
            "FaultCategory::Misconfigured 400.002.02 ",
        ),
        (
            400,
            error("400.002.02", "Bad Request - Invalid Remarks"),
            "FaultCategory::Refused 400.002.02 ",
        ),
        (503, error("500.003.02", "System is busy"), "FaultCategory::Unavailable 500.003.02 "),
        (404, json!("<html>"), "FaultCategory::Unavailable http-404 "),
        (
            200,
            json!({ "ResponseCode": "1", "CheckoutRequestID": "x", "ResponseDescription": "no" }),
            "FaultCategory::Refused 1 ",
        ),
        (200, json!({ "ok": true }), "FaultCategory::Unavailable unexpected-answer "),
    ] {
        let _host = host().answer("POST", PUSH, status, body.clone()).install();
        assert_eq!(describe(&Mpesa::start(order()).unwrap_err()), expected, "{status} {body}");
    }
}

#[test]
fn an_expired_token_is_replaced_once() {
    let token = |text: &str| json!({ "access_token": text, "expires_in": "3599" });
    let expired = error("404.001.03", "Invalid Access Token");
    let replaced = host()
        .answer("GET", LOGIN, 200, token("new"))
        .answer("POST", PUSH, 404, expired.clone())
        .answer("POST", PUSH, 200, accepted())
        .install();
    assert!(Mpesa::start(order()).is_ok());
    let sent = replaced.requests();
    assert_eq!(sent[1].header("authorization"), Some("Basic a2V5OnNlY3JldA=="));
    assert_eq!(sent[2].header("authorization"), Some("Bearer new"));
    assert_eq!(replaced.cached("access_token"), Some(("new".to_owned(), 3_539)));
    drop(replaced);

    let host = host().answer("GET", LOGIN, 200, token("new")).answer("POST", PUSH, 404, expired);
    let host = host.install();
    let fault = Mpesa::start(order()).unwrap_err();
    assert_eq!(describe(&fault), "FaultCategory::Misconfigured 404.001.03 ");
    assert_eq!(host.requests().len(), 3);
}

#[test]
fn wrong_keys_are_misconfigured() {
    for (status, expected) in [
        (400, "FaultCategory::Misconfigured  "),
        (401, "FaultCategory::Misconfigured  "),
        (502, "FaultCategory::Unavailable http-502 "),
    ] {
        let _host = stranger().answer("GET", LOGIN, status, json!({})).install();
        assert_eq!(describe(&Mpesa::start(order()).unwrap_err()), expected, "{status}");
    }
}
