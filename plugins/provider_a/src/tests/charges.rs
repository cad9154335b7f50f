use serde_json::{Value, json};
use tollhouse_plugin::declines::{self, DeclineReason};
use tollhouse_plugin::direct_debit::{self, DebitOrder};
use tollhouse_plugin::partial_debits::{self, PartialOrder};
use tollhouse_plugin::payments::{Payment, PaymentStatus};
use tollhouse_plugin::saved_card::{self, CardOrder};
use tollhouse_plugin::types::{Fault, FaultCategory};

use super::{host, naira, success, transaction, transaction_with};
use crate::Paystack;

const PATH: &str = "/transaction/charge_authorization";

fn order() -> CardOrder {
    CardOrder {
        token: "AUTH_uh8bcl3zbn".into(),
        email: "demo@test.com".into(),
        amount: naira(40333),
        service_ref: "re4lyvq3s3".into(),
        narration: "Loan".into(),
        metadata: r#"{"order":7}"#.into(),
    }
}

fn charge(status: u16, response: Value) -> Result<Payment, Fault> {
    let _host = host().answer("POST", PATH, status, response).install();
    <Paystack as saved_card::Guest>::charge(order())
}

#[test]
fn a_card_is_charged() {
    let host = host().answer("POST", PATH, 200, success(transaction())).install();
    let payment = <Paystack as saved_card::Guest>::charge(order()).unwrap();
    assert_eq!(payment.status, PaymentStatus::Success);
    let wanted = json!({
        "email": "demo@test.com", "amount": 40333, "currency": "NGN", "reference": "re4lyvq3s3",
        "authorization_code": "AUTH_uh8bcl3zbn", "metadata": "{\"order\":7}",
    });
    assert_eq!(host.requests()[0].json(), wanted);
}

/// HTTP 200 only means that the charge was attempted.
#[test]
fn a_declined_card_is_a_failed_payment() {
    let data = transaction_with(json!({"status": "failed", "gateway_response": "Declined"}));
    let payment = charge(200, success(data)).unwrap();
    assert_eq!(payment.status, PaymentStatus::Failed);
    assert_eq!(payment.message, "Declined");
}

#[test]
fn a_paused_charge_returns_the_challenge_url() {
    let payment = charge(
        200,
        success(json!({
            "authorization_url": "https://checkout.paystack.com/resume/0744ub5o065nwyz",
            "reference": "re4lyvq3s3", "access_code": "0744ub5o065nwyz", "paused": true
        })),
    );
    let payment = payment.unwrap();
    assert_eq!(payment.status, PaymentStatus::Pending);
    assert_eq!(payment.amount, naira(40333));
    let url = "https://checkout.paystack.com/resume/0744ub5o065nwyz";
    assert_eq!(payment.challenge_url.as_deref(), Some(url));
}

#[test]
fn a_success_without_an_amount_is_unavailable() {
    let fault = charge(200, success(json!({"status": "success", "reference": "re4lyvq3s3"})));
    assert_eq!(fault.unwrap_err().category, FaultCategory::Unavailable);
}

/// Charges with a used reference; the lookup of the earlier charge gets this response.
fn charge_again(status: u16, response: Value) -> Result<Payment, Fault> {
    let duplicate = json!({"status": false, "message": "Duplicate Transaction Reference",
        "code": "duplicate_reference"});
    let _host = host()
        .answer("POST", PATH, 400, duplicate)
        .answer("GET", "/transaction/verify/re4lyvq3s3", status, response)
        .install();
    <Paystack as saved_card::Guest>::charge(order())
}

#[test]
fn a_repeated_reference_returns_the_first_charge() {
    assert_eq!(charge_again(200, success(transaction())), charge(200, success(transaction())));
    let failed = transaction_with(json!({"status": "failed", "gateway_response": "Declined"}));
    assert_eq!(charge_again(200, success(failed)).unwrap().status, PaymentStatus::Failed);
}

/// The charge may have succeeded, so it must not be reported as refused.
#[test]
fn a_repeated_reference_without_a_visible_charge_is_unavailable() {
    let unknown = json!({"status": false, "message": "Transaction reference not found"});
    for (status, response) in [(404, unknown), (401, json!({})), (500, json!({}))] {
        let fault = charge_again(status, response).unwrap_err();
        assert!(fault.category == FaultCategory::Unavailable && fault.retryable, "{status}");
    }
}

/// A charge counts as refused only if Paystack does not know its reference.
#[test]
fn every_refusal_triggers_a_lookup() {
    let refused = json!({"status": false, "message": "This reference has been taken"});
    let unknown = json!({"status": false, "message": "Transaction reference not found"});
    let again = |status, response| {
        let _host = host()
            .answer("POST", PATH, 400, refused.clone())
            .answer("GET", "/transaction/verify/re4lyvq3s3", status, response)
            .install();
        <Paystack as saved_card::Guest>::charge(order())
    };
    assert_eq!(again(200, success(transaction())), charge(200, success(transaction())));
    assert_eq!(again(404, unknown).unwrap_err().category, FaultCategory::Refused);
    assert_eq!(again(500, json!({})).unwrap_err().category, FaultCategory::Unavailable);
}

#[test]
fn a_debit_is_pending_at_first() {
    let data = transaction_with(json!({
        "status": "processing", "channel": "direct_debit", "requested_amount": null, "fees": null,
        "gateway_response": "Transaction in progress", "paid_at": null, "paidAt": null,
        "authorization": {
            "authorization_code": "AUTH_mandate01", "bin": null, "last4": null, "exp_month": null,
            "exp_year": null, "channel": "direct_debit", "card_type": null, "bank": null,
            "country_code": "NG", "brand": null, "reusable": true, "signature": null,
            "account_name": null
        }
    }));
    let host = host().answer("POST", PATH, 200, success(data)).install();
    let CardOrder { email, amount, service_ref, narration, metadata, .. } = order();
    let mandate = "AUTH_mandate01".into();
    let order = DebitOrder { mandate, email, amount, service_ref, narration, metadata };
    let payment = <Paystack as direct_debit::Guest>::debit(order).unwrap();
    assert_eq!(payment.status, PaymentStatus::Pending);
    assert_eq!(payment.channel, "direct_debit");
    let mandate = payment.instrument.unwrap();
    assert_eq!((mandate.kind.as_str(), mandate.last4.as_str()), ("mandate", ""));
    assert_eq!(host.requests()[0].json()["authorization_code"], "AUTH_mandate01");
}

#[test]
fn a_card_is_deauthorized() {
    let response = json!({"status": true, "message": "Authorization has been deactivated"});
    let host = host().answer("POST", "/customer/authorization/deactivate", 200, response).install();
    assert_eq!(<Paystack as saved_card::Guest>::deauthorize("AUTH_x".into()), Ok(true));
    assert_eq!(host.requests()[0].json(), json!({"authorization_code": "AUTH_x"}));
}

#[test]
fn a_partial_debit_names_the_least_and_returns_what_was_taken() {
    let taken = json!({"amount": 20000, "requested_amount": 40333, "fees": 300});
    let host = host()
        .answer("POST", "/transaction/partial_debit", 200, success(transaction_with(taken)))
        .install();
    let CardOrder { token, email, amount, service_ref, narration, metadata } = order();
    let at_least = naira(10000);
    let order = PartialOrder { token, email, amount, at_least, service_ref, narration, metadata };
    let payment = <Paystack as partial_debits::Guest>::charge_card(order).unwrap();
    assert_eq!((payment.amount, payment.requested), (naira(20000), Some(naira(40333))));
    let sent: Value = host.requests()[0].json();
    assert_eq!((&sent["amount"], &sent["at_least"]), (&json!(40333), &json!(10000)));
}

#[test]
fn the_words_of_a_bank_are_a_reason() {
    for (message, reason) in [
        ("Insufficient Funds", DeclineReason::InsufficientFunds),
        ("Expired Card", DeclineReason::Expired),
        ("Declined", DeclineReason::Other),
    ] {
        let found = <Paystack as declines::Guest>::reason(message.into(), "{}".into());
        assert_eq!(found.unwrap(), reason, "{message}");
    }
}
