//! Pitfalls of Daraja's protocol, one fixture each.

mod examples;
mod push;
mod reversal;
mod status;

use serde_json::{Value, json};
use tollhouse_plugin::payments::KnownSession;
use tollhouse_plugin::sessions::SessionOrder;
use tollhouse_plugin::testing::FakeHost;
use tollhouse_plugin::types::{Fault, Money};

const LOGIN: &str = "/oauth/v1/generate?grant_type=client_credentials";
const PUSH: &str = "/mpesa/stkpush/v1/processrequest";
const QUERY: &str = "/mpesa/stkpushquery/v1/query";
const REVERSAL: &str = "/mpesa/reversal/v1/request";
const CHECKOUT_REQUEST_ID: &str = "ws_CO_191220191020363925";
const NOTIFICATION_URL: &str = "https://tollhouse.test/api/v1/notifications/mpesa/a/c/1/d1";

/// A host with a cached access token.
fn host() -> FakeHost {
    stranger().cached("access_token", "t0k3n")
}

fn stranger() -> FakeHost {
    FakeHost::new()
        .manifest(crate::MANIFEST)
        .setting("shortcode", "174379")
        .setting("initiator_name", "testapi")
        .setting("certificate", "CERTIFICATE")
        .secret("consumer_key", "key")
        .secret("consumer_secret", "secret")
        .secret("passkey", "bfb279f9")
        .secret("initiator_password", "Safaricom999!")
}

fn shillings(whole: u64) -> Money {
    Money { minor: whole * 100, currency: "KES".into() }
}

fn order() -> SessionOrder {
    SessionOrder {
        service_ref: "pay1".into(),
        amount: shillings(10),
        email: "ada@example.com".into(),
        phone: Some("+254708374149".into()),
        customer_name: None,
        narration: "Loan of Ada, #7".into(),
        channels: vec![],
        success_url: "https://shop.test/done".into(),
        cancel_url: None,
        notification_url: NOTIFICATION_URL.into(),
        metadata: "{}".into(),
        save_instrument: false,
    }
}

fn session(state: Option<Value>, notified: Option<Value>) -> KnownSession {
    let bytes = |json: Value| json.to_string().into_bytes();
    KnownSession {
        service_ref: "pay1".into(),
        transaction_id: String::new(),
        amount: shillings(10),
        started_at: "2026-01-01T09:00:00.000Z".into(),
        state: state.map(bytes),
        notified: notified.map(bytes),
    }
}

fn started() -> Option<Value> {
    Some(json!({ "checkout_request_id": CHECKOUT_REQUEST_ID }))
}

fn paid() -> Option<Value> {
    Some(json!({
        "checkout_request_id": CHECKOUT_REQUEST_ID, "receipt": "NLJ7RT61SV", "amount": 10,
        "paid_at": "2019-12-19T07:21:15Z",
    }))
}

fn error(code: &str, message: &str) -> Value {
    json!({ "requestId": "1", "errorCode": code, "errorMessage": message })
}

fn accepted() -> Value {
    json!({
        "MerchantRequestID": "29115-34620561-1", "CheckoutRequestID": CHECKOUT_REQUEST_ID,
        "ResponseCode": "0", "ResponseDescription": "Success. Request accepted for processing",
        "CustomerMessage": "Success. Request accepted for processing",
    })
}

/// Returns category and code, and the cause or the field.
fn describe(fault: &Fault) -> String {
    let detail = |wanted: &str| fault.details.iter().find(|(name, _)| name == wanted);
    let detail = detail("cause").or(detail("field")).map_or("", |(_, value)| value);
    format!("{:?} {} {detail}", fault.category, fault.code)
}
