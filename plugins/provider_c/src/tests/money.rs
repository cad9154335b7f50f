//! Amounts are exact in requests and responses. Response bodies here are text, because a `Value`
//! would hold floats.

use tollhouse_plugin::direct_debit::{DebitOrder, Guest as _};
use tollhouse_plugin::payments::Payment;
use tollhouse_plugin::types::{Fault, FaultCategory, Money};
use tollhouse_plugin::verification::Guest as _;

use super::{QUERY, host, naira};
use crate::Monnify;

fn verify(paid: &str, payable: &str, settled: &str) -> Result<Payment, Fault> {
    let body = format!(
        r#"{{"requestSuccessful":true,"responseCode":"0","responseBody":{{"paymentReference":"pay-1",
        "paymentStatus":"PAID","amountPaid":{paid},"totalPayable":{payable},"settlementAmount":{settled}}}}}"#
    );
    let _host = host().answer_text("GET", QUERY, 200, &body).install();
    Monnify::verify("pay-1".into())
}

#[test]
fn amounts_in_responses_are_exact() {
    for (paid, payable, settled, minor) in [
        ("30", "30", "29.57", (3_000, Some(3_000), Some(43))),
        ("\"30.00\"", "\"30.00\"", "\"29.57\"", (3_000, Some(3_000), Some(43))),
        ("1E+2", "100.0", "98.5", (10_000, Some(10_000), Some(150))),
        (
            "\"1234567.89\"",
            "1234567.89",
            "1216049.37",
            (123_456_789, Some(123_456_789), Some(1_851_852)),
        ),
        (
            "90071992547409.93",
            "\"90071992547409.93\"",
            "null",
            (9_007_199_254_740_993, Some(9_007_199_254_740_993), None),
        ),
    ] {
        let payment = verify(paid, payable, settled).unwrap();
        let requested = payment.requested.map(|money| money.minor);
        assert_eq!((payment.amount.minor, requested, payment.fees_minor), minor, "{paid}");
        assert_eq!(payment.amount.currency, "NGN");
    }
}

#[test]
fn inexact_and_invalid_amounts_are_unavailable() {
    for (paid, payable, settled) in [
        ("30.001", "30", "29"),
        ("\"30.001\"", "30", "29"),
        ("30", "\"30.009\"", "29"),
        ("\"1,000.00\"", "1000", "990"),
        ("-30", "30", "29"),
        ("\"\"", "30", "29"),
        ("null", "30", "29"),
    ] {
        let fault = verify(paid, payable, settled).unwrap_err();
        assert_eq!((fault.code.as_str(), fault.retryable), ("unexpected-answer", true), "{paid}");
    }
}

/// An invalid amount that is only reported does not fail the payment.
#[test]
fn an_inexact_or_invalid_settlement_does_not_fail_the_payment() {
    for (settled, fees) in [
        ("29.995", Some(1)),
        ("\"29.571\"", Some(43)),
        ("\"1,000.00\"", None),
        ("-29", None),
        ("{}", None),
    ] {
        let payment = verify("30", "30", settled).unwrap();
        assert_eq!((payment.amount.minor, payment.fees_minor), (3_000, fees), "{settled}");
    }
}

/// Monnify cannot keep more than was paid.
#[test]
fn a_settlement_above_the_payment_leaves_the_fees_unknown() {
    assert_eq!(verify("30", "30", "30.01").unwrap().fees_minor, None);
    assert_eq!(verify("30", "30", "30").unwrap().fees_minor, Some(0));
}

fn order(amount: Money) -> DebitOrder {
    DebitOrder {
        mandate: "M-1".into(),
        email: "demo@test.com".into(),
        amount,
        service_ref: "pay-1".into(),
        narration: "Loan".into(),
        metadata: String::new(),
    }
}

#[test]
fn amounts_in_requests_are_exact() {
    for (minor, written) in [
        (6_000, r#""debitAmount":60,"#),
        (5, r#""debitAmount":0.05,"#),
        (250_050, r#""debitAmount":2500.50,"#),
        (9_007_199_254_740_993, r#""debitAmount":90071992547409.93,"#),
    ] {
        let host = host().timeout("POST", "/mandate/debit").install();
        assert_eq!(Monnify::debit(order(naira(minor))).unwrap_err().code, "timeout");
        let sent = host.requests()[0].text();
        assert!(sent.contains(written), "{sent}");
    }
}

/// Debits name no currency, so dollars would be taken for naira.
#[test]
fn orders_in_other_currencies_are_not_sent() {
    let host = host().install();
    let fault = Monnify::debit(order(Money { minor: 1, currency: "USD".into() })).unwrap_err();
    assert_eq!((fault.category, fault.field()), (FaultCategory::Invalid, Some("currency")));
    assert!(host.requests().is_empty());
}
