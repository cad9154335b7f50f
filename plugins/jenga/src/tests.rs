use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::{Value, json};
use tollhouse_plugin::payments::{KnownSession, Payment, PaymentStatus};
use tollhouse_plugin::sessions::{Guest, NextStep, Session, SessionOrder};
use tollhouse_plugin::testing::{FakeHost, example_notification};
use tollhouse_plugin::types::{Fault, FaultCategory, Money};

use super::*;

const AUTH: &str = "/authentication/api/v3/authenticate/merchant";
const PUSH: &str = "/v3-apis/payment-api/v3.0/stkussdpush/initiate";
const DETAILS: &str = "/v3-apis/transaction-api/v3.0/transactions/details/EXAMPLE00001";

/// An account at Jenga with a valid token.
fn account() -> FakeHost {
    FakeHost::new()
        .manifest(MANIFEST)
        .secret("api_key", "k3y")
        .secret("consumer_secret", "s3cret")
        .secret("private_key", "PEM")
        .setting("merchant_code", "9397187322")
        .setting("account_number", "0170194290581")
        .setting("merchant_name", "Sportify Ltd")
        .answer("POST", AUTH, 200, json!({"accessToken": "t0ken"}))
}

fn kes(minor: u64) -> Money {
    Money { minor, currency: "KES".into() }
}

fn order() -> SessionOrder {
    SessionOrder {
        service_ref: "EXAMPLE00001".into(),
        amount: kes(500),
        email: "ada@example.com".into(),
        phone: Some("+254764555291".into()),
        customer_name: None,
        narration: "Loan".into(),
        channels: vec![],
        success_url: "https://shop.example/done".into(),
        cancel_url: None,
        notification_url: "https://host.example/n/1".into(),
        metadata: "{}".into(),
        save_instrument: false,
    }
}

fn start(order: SessionOrder) -> Result<Session, Fault> {
    Jenga::start(order)
}

fn known(state: Option<Value>, notified: Option<Value>) -> KnownSession {
    let bytes = |value: Option<Value>| value.map(|value| value.to_string().into_bytes());
    KnownSession {
        service_ref: "EXAMPLE00001".into(),
        transaction_id: String::new(),
        amount: kes(500),
        started_at: "2026-01-01T09:00:00Z".into(),
        state: bytes(state),
        notified: bytes(notified),
    }
}

fn started() -> KnownSession {
    known(Some(json!({"transaction_id": "1001"})), None)
}

fn verify(session: KnownSession) -> Result<Payment, Fault> {
    Jenga::verify(session)
}

fn acknowledged() -> Value {
    json!({"status": true, "code": -1, "message": "", "reference": "EXAMPLE00001", "transactionId": "1001"})
}

fn refusal(code: u64) -> Value {
    json!({"status": false, "code": code, "message": "no"})
}

fn details(code: i64) -> Value {
    json!({"status": true, "code": 0, "data": {"stateCode": code, "message": "m", "amount": 5, "charge": 0.5}})
}

#[test]
fn the_examples_succeed() {
    let _host = FakeHost::new().examples(MANIFEST).install();
    assert!(matches!(start(order()).unwrap().next, NextStep::Prompt(_)));
    assert_eq!(verify(started()).unwrap().status, PaymentStatus::Success);
    let (headers, body) = example_notification(MANIFEST);
    Jenga::receive(started(), headers, body).unwrap();
}

#[test]
fn a_push_is_signed_over_the_documented_fields() {
    let host = account().answer("POST", PUSH, 200, acknowledged()).install();
    let session = start(order()).unwrap();
    assert_eq!(session.state, br#"{"transaction_id":"1001"}"#);
    let [token, push] = &host.requests()[..] else { panic!("two requests") };
    assert_eq!(token.header("api-key"), Some("k3y"));
    assert_eq!(token.json(), json!({"merchantCode": "9397187322", "consumerSecret": "s3cret"}));
    assert_eq!(push.url, format!("https://api.finserve.africa{PUSH}"));
    assert_eq!(push.header("authorization"), Some("Bearer t0ken"));
    // The fake host writes the key's name and the SHA-256 of the signed text, which is
    // 0170194290581EXAMPLE00001254764555291Equitel5.00KES.
    let hash = "c7c48ef85dd4d336fad28230c213641ca24313f7927ee134b3b808b9f3b0be30";
    let signature = BASE64_STANDARD.encode(format!("rsa-sha256(private_key, {hash})"));
    assert_eq!(push.header("signature"), Some(&*signature));
    let mut sent = push.json();
    assert_eq!(sent["payment"]["date"].take().as_str().unwrap().len(), 10);
    assert_eq!(
        sent,
        json!({
            "merchant": {"accountNumber": "0170194290581", "countryCode": "KE", "name": "Sportify Ltd"},
            "payment": {
                "ref": "EXAMPLE00001", "amount": "5.00", "currency": "KES", "telco": "Equitel",
                "mobileNumber": "254764555291", "date": null,
                "callBackUrl": "https://host.example/n/1", "pushType": "STK",
            },
        })
    );
}

#[test]
fn a_token_is_cached_and_replaced_once_if_it_is_rejected() {
    let host = account()
        .cached("access-token", "old")
        .answer("GET", DETAILS, 401, json!({}))
        .answer("GET", DETAILS, 200, details(2))
        .install();
    assert_eq!(verify(started()).unwrap().status, PaymentStatus::Success);
    assert_eq!(host.requests().len(), 3);
    assert_eq!(host.cached("access-token"), Some(("t0ken".into(), 600)));
    assert_eq!(verify(started()).unwrap().status, PaymentStatus::Success);
    assert_eq!(host.requests().len(), 4);
    assert_eq!(host.requests()[3].header("authorization"), Some("Bearer t0ken"));
}

#[test]
fn only_mobile_numbers_of_kenya_are_served() {
    for phone in [None, Some("254764555291"), Some("+25476455529"), Some("+2348012345678")] {
        let _host = account().install();
        let fault = start(SessionOrder { phone: phone.map(Into::into), ..order() }).unwrap_err();
        assert_eq!((fault.category, fault.field()), (FaultCategory::Invalid, Some("phone")));
    }
    for (phone, telco) in [("+254722000000", "Safaricom"), ("+254763000000", "Equitel")] {
        let host = account().answer("POST", PUSH, 200, acknowledged()).install();
        start(SessionOrder { phone: Some(phone.into()), ..order() }).unwrap();
        assert_eq!(host.requests()[1].json()["payment"]["telco"], telco);
    }
}

#[test]
fn only_whole_shillings_are_taken() {
    let usd = Money { minor: 500, currency: "USD".into() };
    for (amount, field) in [(kes(550), "amount"), (usd, "currency")] {
        let _host = account().install();
        let fault = start(SessionOrder { amount, ..order() }).unwrap_err();
        assert_eq!((fault.category, fault.field()), (FaultCategory::Invalid, Some(field)));
    }
}

#[test]
fn each_refusal_has_its_category() {
    for (status, code, category, expected) in [
        (400, 400_101, FaultCategory::Refused, "duplicate-reference"),
        (400, 103_104, FaultCategory::Refused, "103104"),
        (400, 900_101, FaultCategory::Misconfigured, "900101"),
        (401, 401_101, FaultCategory::Misconfigured, "401101"),
        (404, 111_102, FaultCategory::NotFound, ""),
        (200, 400_101, FaultCategory::Refused, "duplicate-reference"),
        (200, 7, FaultCategory::Unavailable, "7"),
    ] {
        let _host = account().answer("POST", PUSH, status, refusal(code)).install();
        let fault = start(order()).unwrap_err();
        assert_eq!((fault.category, fault.code.as_str()), (category, expected), "{code}");
    }
}

#[test]
fn each_state_of_a_push_is_mapped() {
    for (code, status) in [
        (2, PaymentStatus::Success),
        (1, PaymentStatus::Failed),
        (-1, PaymentStatus::Pending),
        (9, PaymentStatus::Pending),
    ] {
        let _host = account().answer("GET", DETAILS, 200, details(code)).install();
        let payment = verify(started()).unwrap();
        assert_eq!((payment.status, payment.amount), (status, kes(500)), "{code}");
        assert_eq!((payment.fees_minor, payment.transaction_id.as_str()), (Some(50), "1001"));
    }
}

#[test]
fn a_push_that_the_query_does_not_find_has_the_outcome_of_its_callback() {
    let notified = |code: u64| json!({"code": code.to_string(), "receipt": "R1", "debited": 5});
    let state = || Some(json!({"transaction_id": "1001"}));
    for (notified, status) in [
        (None, PaymentStatus::Pending),
        (Some(notified(0)), PaymentStatus::Pending),
        (Some(notified(1)), PaymentStatus::Failed),
        (Some(notified(2)), PaymentStatus::Pending),
        (Some(notified(3)), PaymentStatus::Success),
        (Some(notified(4)), PaymentStatus::Pending),
        (Some(notified(5)), PaymentStatus::Failed),
        (Some(notified(7)), PaymentStatus::Failed),
    ] {
        let _host = account().answer("GET", DETAILS, 404, refusal(111_102)).install();
        assert_eq!(verify(known(state(), notified)).unwrap().status, status);
    }
    let _host = account().answer("GET", DETAILS, 404, refusal(111_102)).install();
    assert_eq!(verify(known(None, None)).unwrap_err().category, FaultCategory::NotFound);
}

#[test]
fn failures_of_jenga_are_unavailable() {
    for host in [
        account().timeout("GET", DETAILS),
        account().no_connection("GET", DETAILS),
        account().cut("GET", DETAILS),
        account().answer_text("GET", DETAILS, 200, "<html>"),
        account().answer_text("GET", DETAILS, 404, "<html>"),
        account().answer("GET", DETAILS, 429, json!({})),
        account().answer("GET", DETAILS, 500, json!({})),
    ] {
        let _host = host.install();
        assert_eq!(verify(started()).unwrap_err().category, FaultCategory::Unavailable);
    }
}

#[test]
fn a_callback_is_read_without_the_number_of_the_payer() {
    let _host = account().install();
    let receive = |body: &str| Jenga::receive(started(), vec![], body.as_bytes().to_vec());
    let body = json!({
        "status": true, "code": 3, "transactionReference": "EXAMPLE00001", "telcoReference": "R1",
        "mobileNumber": "254764555291", "debitedAmount": 5.5,
    });
    let notified = receive(&body.to_string()).unwrap();
    assert_eq!(
        String::from_utf8(notified).unwrap(),
        r#"{"code":"3","receipt":"R1","debited":5.50}"#
    );
    for body in ["", "[]", "{}", r#"{"code": 3, "transactionReference": "ANOTHER00001"}"#] {
        assert_eq!(receive(body).unwrap_err().category, FaultCategory::Invalid);
    }
}
