use serde_json::{Value, json};
use tollhouse_plugin::declines::{self, DeclineReason};
use tollhouse_plugin::direct_debit::{self, DebitOrder};
use tollhouse_plugin::payments::{Payment, PaymentStatus};
use tollhouse_plugin::saved_card::{self, CardOrder};
use tollhouse_plugin::types::{Fault, FaultCategory};

use super::{VERIFY, host, naira, parsed, refused, success, transaction, transaction_with};
use crate::Flutterwave;

const PATH: &str = "/tokenized-charges";
const TOKEN: &str = "flw-t1nf-f9b3bf384cd30d6fca42b6df9d27bd2f-k3n";

fn order() -> CardOrder {
    CardOrder {
        token: TOKEN.into(),
        email: "demo@test.com".into(),
        amount: naira(6000),
        service_ref: "3456787654".into(),
        narration: "Loan".into(),
        metadata: r#"{"order":7}"#.into(),
    }
}

fn charge(status: u16, response: Value) -> Result<Payment, Fault> {
    let _host = host().answer("POST", PATH, status, response).install();
    <Flutterwave as saved_card::Guest>::charge(order())
}

fn wanted() -> Value {
    json!({
        "token": TOKEN, "email": "demo@test.com", "amount": 60, "currency": "NGN",
        "tx_ref": "3456787654", "narration": "Loan",
    })
}

#[test]
fn a_card_is_charged() {
    let host = host().answer("POST", PATH, 200, success(transaction())).install();
    let payment = <Flutterwave as saved_card::Guest>::charge(order()).unwrap();
    assert_eq!((payment.status, payment.amount), (PaymentStatus::Success, naira(6000)));
    assert_eq!(host.requests()[0].json(), wanted());
}

#[test]
fn a_mandate_is_debited_with_the_same_call() {
    let data = transaction_with(json!({
        "status": "pending", "payment_type": "debit_ng_account", "card": null, "app_fee": null,
    }));
    let host = host().answer("POST", PATH, 200, success(data)).install();
    let CardOrder { token, email, amount, service_ref, narration, metadata } = order();
    let order = DebitOrder { mandate: token, email, amount, service_ref, narration, metadata };
    let payment = <Flutterwave as direct_debit::Guest>::debit(order).unwrap();
    assert_eq!((payment.status, payment.channel.as_str()), (PaymentStatus::Pending, "bank"));
    assert_eq!(payment.instrument, None);
    assert_eq!(host.requests()[0].json(), wanted());
}

/// HTTP 200 and "success" only mean that the charge was attempted.
#[test]
fn a_declined_card_is_a_failed_payment() {
    let data = transaction_with(json!({"status": "failed", "processor_response": "Declined"}));
    let payment = charge(200, success(data)).unwrap();
    assert_eq!((payment.status, payment.message.as_str()), (PaymentStatus::Failed, "Declined"));
}

const BANK: &str = "https://ravesandboxapi.flutterwave.com/mockvbvpage?ref=FLW-MOCK";

/// The redirect is inside `data` or beside it.
#[test]
fn a_redirect_to_the_bank_is_a_challenge() {
    let meta = json!({"authorization": {"mode": "redirect", "redirect": BANK}});
    let mut within = success(transaction_with(json!({"status": "pending", "meta": meta})));
    within["message"] = json!("Charge initiated");
    let mut beside = success(transaction_with(json!({"status": "pending", "meta": null})));
    beside["meta"] = meta;
    for response in [within, beside] {
        let payment = charge(200, response).unwrap();
        assert_eq!(payment.status, PaymentStatus::Pending);
        assert_eq!(payment.challenge_url.as_deref(), Some(BANK));
        assert_eq!(payment.metadata, None);
    }
}

#[test]
fn a_settled_charge_has_no_challenge() {
    let meta = json!({"authorization": {"mode": "redirect", "redirect": BANK}});
    for status in ["successful", "failed"] {
        let data = transaction_with(json!({"status": status, "meta": meta}));
        assert_eq!(charge(200, success(data)).unwrap().challenge_url, None);
    }
    let by_code = json!({"authorization": {"mode": "otp"}});
    let data = transaction_with(json!({"status": "pending", "meta": by_code}));
    assert_eq!(charge(200, success(data)).unwrap().challenge_url, None);
}

#[test]
fn a_pending_charge_may_omit_fields() {
    let payment = charge(200, success(json!({"id": 1, "status": "pending"}))).unwrap();
    assert_eq!((payment.status, payment.amount), (PaymentStatus::Pending, naira(6000)));
    assert_eq!(payment.service_ref, "3456787654");
    let fault = charge(200, success(json!({"id": 1, "status": "successful"}))).unwrap_err();
    assert_eq!(fault.category, FaultCategory::Unavailable);
}

#[test]
fn the_token_stays_out_of_raw() {
    let raw = charge(200, success(transaction())).unwrap().raw;
    assert!(!raw.contains(TOKEN) && parsed(&raw)["card"]["last_4digits"] == "7238", "{raw}");
}

/// Charges with a used reference; the lookup of the earlier charge gets this response.
fn charge_again(status: u16, response: Value) -> Result<Payment, Fault> {
    let _host = host()
        .answer("POST", PATH, 400, refused("Duplicate transaction reference"))
        .answer("GET", VERIFY, status, response)
        .install();
    <Flutterwave as saved_card::Guest>::charge(order())
}

#[test]
fn a_repeated_reference_returns_the_first_charge() {
    assert_eq!(charge_again(200, success(transaction())), charge(200, success(transaction())));
    let failed = transaction_with(json!({"status": "failed"}));
    assert_eq!(charge_again(200, success(failed)).unwrap().status, PaymentStatus::Failed);
}

/// The charge may have succeeded, so it must not be reported as refused.
#[test]
fn a_repeated_reference_without_a_visible_charge_is_unavailable() {
    let unknown = refused("No transaction was found for this id");
    for (status, response) in [(404, unknown), (401, json!({})), (500, json!({}))] {
        let fault = charge_again(status, response).unwrap_err();
        assert!(fault.category == FaultCategory::Unavailable && fault.retryable, "{status}");
    }
}

/// The messages for a used reference vary, and not all are known.
#[test]
fn every_refusal_triggers_a_lookup() {
    let nothing = refused("No transaction was found for this id");
    for (status, words) in
        [(400, "tx_ref must be unique"), (400, "Try another one"), (404, "Token not found")]
    {
        let charge = |found: u16, response: &Value| {
            let host = host()
                .answer("POST", PATH, status, refused(words))
                .answer("GET", VERIFY, found, response.clone())
                .install();
            let outcome = <Flutterwave as saved_card::Guest>::charge(order());
            assert_eq!(host.requests().len(), 2);
            outcome
        };
        assert_eq!(charge(200, &success(transaction())).unwrap().status, PaymentStatus::Success);
        let refusal = charge(404, &nothing).unwrap_err();
        assert!(refusal.is_refusal() && refusal.message == words, "{refusal:?}");
        for (found, response) in [(401, json!({})), (500, json!({})), (400, refused("Not today"))] {
            let fault = charge(found, &response).unwrap_err();
            assert_eq!(fault.category, FaultCategory::Unavailable, "{words} {found}");
        }
    }
}

#[test]
fn a_503_is_unavailable_and_leaves_the_outcome_unknown() {
    let response = refused("An error occurred. Please contact support");
    let fault = charge(503, response).unwrap_err();
    assert_eq!((fault.category, fault.code.as_str()), (FaultCategory::Unavailable, "http-503"));
}

#[test]
fn tokens_are_not_deauthorized() {
    let host = host().install();
    assert_eq!(<Flutterwave as saved_card::Guest>::deauthorize(TOKEN.into()), Ok(false));
    assert!(host.requests().is_empty());
}

#[test]
fn the_words_of_a_bank_are_a_reason() {
    for (message, reason) in [
        ("Insufficient Funds", DeclineReason::InsufficientFunds),
        ("Expired Card", DeclineReason::Expired),
        ("Declined", DeclineReason::Other),
    ] {
        let found = <Flutterwave as declines::Guest>::reason(message.into(), "{}".into());
        assert_eq!(found.unwrap(), reason, "{message}");
    }
}
