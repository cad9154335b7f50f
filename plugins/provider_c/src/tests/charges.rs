use serde_json::{Value, json};
use tollhouse_plugin::declines::{self, DeclineReason};
use tollhouse_plugin::payments::{Payment, PaymentStatus};
use tollhouse_plugin::saved_card::{CardOrder, Guest};
use tollhouse_plugin::types::{Fault, FaultCategory};

use super::{
    DEBIT, PAGE_1, QUERY, host, naira, parsed, refused, success, transaction, transaction_with,
};
use crate::Monnify;

const PATH: &str = "/api/v1/merchant/cards/charge-card-token";

fn order() -> CardOrder {
    CardOrder {
        token: "MNFY_8C1F7E2A".into(),
        email: "demo@test.com".into(),
        amount: naira(40333),
        service_ref: "pay-1".into(),
        narration: "Loan".into(),
        metadata: r#"{"order":7}"#.into(),
    }
}

fn charge(status: u16, response: Value) -> Result<Payment, Fault> {
    let host = host().answer("POST", PATH, status, response);
    let _host =
        host.answer("GET", PAGE_1, 200, success(json!({"settlementAmount": 400}))).install();
    Monnify::charge(order())
}

#[test]
fn a_card_is_charged() {
    let host = host().answer("POST", PATH, 200, success(transaction())).install();
    let payment = Monnify::charge(order()).unwrap();
    assert_eq!((payment.status, payment.amount), (PaymentStatus::Success, naira(40333)));
    let wanted = json!({
        "cardToken": "MNFY_8C1F7E2A", "amount": 403.33, "customerName": "demo@test.com",
        "customerEmail": "demo@test.com", "paymentReference": "pay-1", "paymentDescription": "Loan",
        "currencyCode": "NGN", "contractCode": "5867418298", "apiKey": "MK_TEST_SAF7HR5F3F",
        "metaData": {"order": 7},
    });
    assert_eq!(host.requests()[0].json(), wanted);
}

/// A response in the format of direct charges, which has few fields.
fn direct(status: &str, more: Value) -> Value {
    let mut body = json!({
        "status": status, "transactionReference": "MNFY|1", "paymentReference": "pay-1",
        "authorizedAmount": "403.33",
    });
    for (name, value) in more.as_object().unwrap() {
        body[name] = value.clone();
    }
    success(body)
}

#[test]
fn statuses_of_direct_charges_are_mapped() {
    for (word, status) in [
        ("SUCCESS", PaymentStatus::Success),
        ("PENDING", PaymentStatus::Pending),
        ("OTP_AUTHORIZATION_REQUIRED", PaymentStatus::Pending),
        ("BANK_AUTHORIZATION_REQUIRED", PaymentStatus::Pending),
        ("FAILED", PaymentStatus::Failed),
        ("something new", PaymentStatus::Pending),
    ] {
        let payment = charge(200, direct(word, json!({}))).unwrap();
        assert_eq!((payment.status, payment.amount), (status, naira(40333)), "{word}");
        let fees = (status == PaymentStatus::Success).then_some(333);
        assert_eq!(payment.fees_minor, fees, "{word}");
    }
}

const BANK: &str = "https://sandbox.monnify.com/3ds/1";

#[test]
fn a_redirect_to_the_bank_is_a_challenge() {
    let more = json!({"secure3dData": {"id": "1", "redirectUrl": BANK}});
    let payment = charge(200, direct("BANK_AUTHORIZATION_REQUIRED", more.clone())).unwrap();
    assert_eq!(payment.status, PaymentStatus::Pending);
    assert_eq!(payment.challenge_url.as_deref(), Some(BANK));
    for over in ["SUCCESS", "FAILED"] {
        assert_eq!(charge(200, direct(over, more.clone())).unwrap().challenge_url, None);
    }
}

/// There is no page to enter the OTP on, and `authData`, with which it could be submitted, is not
/// shown.
#[test]
fn a_charge_that_needs_an_otp_is_pending() {
    let otp = json!({"id": "MNFY-1", "message": "Enter the OTP", "authData": "s3cr3t"});
    let payment = charge(200, direct("OTP_AUTHORIZATION_REQUIRED", json!({"otpData": otp})));
    let payment = payment.unwrap();
    assert_eq!((payment.status, payment.challenge_url), (PaymentStatus::Pending, None));
    assert_eq!(payment.message, "Enter the OTP");
    assert!(!payment.raw.contains("s3cr3t"));
}

#[test]
fn a_pending_charge_may_omit_fields() {
    let payment = charge(200, success(json!({"status": "PENDING"}))).unwrap();
    assert_eq!((payment.status, payment.amount), (PaymentStatus::Pending, naira(40333)));
    assert_eq!(payment.service_ref, "pay-1");
    let fault = charge(200, success(json!({"status": "SUCCESS"}))).unwrap_err();
    assert_eq!(fault.category, FaultCategory::Unavailable);
}

#[test]
fn the_token_stays_out_of_raw() {
    let raw = charge(200, success(transaction())).unwrap().raw;
    assert!(!raw.contains("MNFY_8C1F7E2A"), "{raw}");
    assert_eq!(parsed(&raw)["cardDetails"]["last4"], "1111");
}

/// Charges with a used reference; the lookup of the earlier charge gets this response.
fn charge_again(status: u16, response: Value) -> Result<Payment, Fault> {
    let _host = host()
        .answer("POST", PATH, 422, refused("99", "Duplicate payment reference"))
        .answer("GET", QUERY, status, response)
        .answer("GET", DEBIT, 404, refused("99", "Not found"))
        .answer("POST", "/auth/login", 401, json!({}))
        .install();
    Monnify::charge(order())
}

#[test]
fn a_repeated_reference_returns_the_first_charge() {
    assert_eq!(charge_again(200, success(transaction())), charge(200, success(transaction())));
    let failed = transaction_with(json!({"paymentStatus": "FAILED"}));
    assert_eq!(charge_again(200, success(failed)).unwrap().status, PaymentStatus::Failed);
}

/// The charge may have succeeded, so it must not be reported as refused.
#[test]
fn a_repeated_reference_without_a_visible_charge_is_unavailable() {
    let unknown = refused("99", "No transaction");
    for (status, response) in [(404, unknown), (401, json!({})), (500, json!({}))] {
        let fault = charge_again(status, response).unwrap_err();
        assert!(fault.category == FaultCategory::Unavailable && fault.retryable, "{status}");
    }
}

/// The messages for a used reference vary, and not all are known.
#[test]
fn every_refusal_triggers_a_lookup() {
    let nothing = refused("99", "No transaction");
    for (status, words) in [
        (422, "paymentReference must be unique"),
        (400, "Try another one"),
        (404, "Card token not found"),
    ] {
        let charge = |found: u16, response: &Value| {
            let host = host()
                .answer("POST", PATH, status, refused("99", words))
                .answer("GET", QUERY, found, response.clone())
                .answer("GET", DEBIT, 404, nothing.clone())
                .answer("POST", "/auth/login", 401, json!({}));
            let _host = host.install();
            Monnify::charge(order())
        };
        assert_eq!(charge(200, &success(transaction())).unwrap().status, PaymentStatus::Success);
        let refusal = charge(404, &nothing).unwrap_err();
        assert!(refusal.is_refusal() && refusal.message == words, "{refusal:?}");
        let other = refused("99", "Not today");
        for (found, response) in [(401, json!({})), (500, json!({})), (400, other)] {
            let fault = charge(found, &response).unwrap_err();
            assert_eq!(fault.category, FaultCategory::Unavailable, "{words} {found}");
        }
    }
}

#[test]
fn tokens_are_not_deauthorized() {
    let host = host().install();
    assert_eq!(Monnify::deauthorize("MNFY_8C1F7E2A".into()), Ok(false));
    assert!(host.requests().is_empty());
}

#[test]
fn the_words_of_a_bank_are_a_reason() {
    for (message, reason) in [
        ("Insufficient Funds", DeclineReason::InsufficientFunds),
        ("Expired Card", DeclineReason::Expired),
        ("Declined", DeclineReason::Other),
    ] {
        let found = <Monnify as declines::Guest>::reason(message.into(), "{}".into());
        assert_eq!(found.unwrap(), reason, "{message}");
    }
}

#[test]
fn a_page_that_expired_is_no_expired_card() {
    let reason = |message: &str, raw: &str| {
        <Monnify as declines::Guest>::reason(message.into(), raw.into()).unwrap()
    };
    assert_eq!(reason("EXPIRED", "{}"), DeclineReason::Other);
    let raw = r#"{"responseMessage":"Restricted Card"}"#;
    assert_eq!(reason("FAILED", raw), DeclineReason::Blocked);
}
