use serde_json::{Value, json};
use tollhouse_plugin::payments::PaymentStatus;
use tollhouse_plugin::sessions::Guest;

use super::{CHECKOUT_REQUEST_ID, QUERY, describe, error, host, paid, session, shillings, started};
use crate::Mpesa;

fn result(code: &str) -> Value {
    json!({
        "ResponseCode": "0", "ResponseDescription": "accepted",
        "CheckoutRequestID": CHECKOUT_REQUEST_ID, "ResultCode": code, "ResultDesc": "a result",
    })
}

#[test]
fn only_documented_codes_end_a_payment() {
    for (code, status) in [
        ("0", PaymentStatus::Success),
        ("1", PaymentStatus::Failed),
        ("1032", PaymentStatus::Failed),
        ("1037", PaymentStatus::Failed),
        ("2001", PaymentStatus::Failed),
        ("4999", PaymentStatus::Pending),
        ("", PaymentStatus::Pending),
    ] {
        let _host = host().answer("POST", QUERY, 200, result(code)).install();
        let seen = Mpesa::verify(session(started(), None)).unwrap();
        assert_eq!((seen.status, &*seen.message), (status, "a result"), "{code}");
        assert_eq!((seen.amount, seen.transaction_id), (shillings(10), String::new()));
    }
}

#[test]
fn a_pending_push_is_an_error_of_the_query() {
    let pending = error("500.001.1001", "The transaction is being processed");
    let _host = host().answer("POST", QUERY, 500, pending).install();
    let seen = Mpesa::verify(session(started(), None)).unwrap();
    assert_eq!(seen.status, PaymentStatus::Pending);
    let _host = host().answer("POST", QUERY, 500, error("500.001.1001", "Unknown")).install();
    let fault = Mpesa::verify(session(started(), None)).unwrap_err();
    assert_eq!(describe(&fault), "FaultCategory::Unavailable 500.001.1001 ");
}

#[test]
fn the_callback_adds_receipt_amount_and_time() {
    let host = host().answer("POST", QUERY, 200, result("0")).install();
    // The response to the push was lost, but the callback has the id, too.
    let seen = Mpesa::verify(session(None, paid())).unwrap();
    assert_eq!(&*seen.transaction_id, "NLJ7RT61SV");
    assert_eq!(seen.paid_at.as_deref(), Some("2019-12-19T07:21:15Z"));
    assert_eq!(seen.amount, shillings(10));
    assert_eq!(host.requests()[0].json()["CheckoutRequestID"], CHECKOUT_REQUEST_ID);
}

#[test]
fn a_push_without_id_is_not_known() {
    let _host = host().install();
    let fault = Mpesa::verify(session(None, None)).unwrap_err();
    assert_eq!(describe(&fault), "FaultCategory::NotFound  ");
}

fn callback(id: &str, items: Value) -> Vec<u8> {
    let metadata = json!({ "Item": items });
    let body = json!({ "Body": { "stkCallback": {
        "MerchantRequestID": "1", "CheckoutRequestID": id, "ResultCode": 0,
        "ResultDesc": "done", "CallbackMetadata": metadata,
    }}});
    body.to_string().into_bytes()
}

#[test]
fn a_callback_is_reduced_to_what_is_needed() {
    let items = json!([
        { "Name": "Amount", "Value": 10.00 },
        { "Name": "MpesaReceiptNumber", "Value": "NLJ7RT61SV" },
        { "Name": "Balance" },
        { "Name": "TransactionDate", "Value": 20_191_219_102_115_u64 },
        { "Name": "PhoneNumber", "Value": 254_708_374_149_u64 },
    ]);
    let body = callback(CHECKOUT_REQUEST_ID, items);
    let notified = Mpesa::receive(session(started(), None), vec![], body).unwrap();
    let notified: Value = serde_json::from_slice(&notified).unwrap();
    assert_eq!(Some(notified), paid());
}

#[test]
fn a_callback_of_a_failure_has_no_metadata() {
    let body = json!({ "Body": { "stkCallback": {
        "MerchantRequestID": "1", "CheckoutRequestID": CHECKOUT_REQUEST_ID, "ResultCode": 1032,
        "ResultDesc": "Request cancelled by user",
    }}});
    let body = body.to_string().into_bytes();
    let notified = Mpesa::receive(session(None, None), vec![], body).unwrap();
    let notified: Value = serde_json::from_slice(&notified).unwrap();
    assert_eq!(notified["checkout_request_id"], CHECKOUT_REQUEST_ID);
    assert_eq!(notified["receipt"], Value::Null);
}

#[test]
fn other_bodies_are_invalid() {
    let other = callback("ws_CO_2", json!([]));
    for body in [b"".to_vec(), b"{}".to_vec(), b"<xml/>".to_vec(), other] {
        let fault = Mpesa::receive(session(started(), None), vec![], body).unwrap_err();
        assert_eq!(describe(&fault), "FaultCategory::Invalid  body");
    }
}
