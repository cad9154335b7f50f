//! Amounts are exact in requests and responses. Response bodies here are text, because a `Value`
//! would hold floats.

use tollhouse_plugin::payments::Payment;
use tollhouse_plugin::saved_card::{CardOrder, Guest as _};
use tollhouse_plugin::types::Fault;
use tollhouse_plugin::verification::Guest as _;

use super::{VERIFY, host, naira, verifying_host};
use crate::Flutterwave;

fn verify(amount: &str, charged: &str, fee: &str) -> Result<Payment, Fault> {
    let body = format!(
        r#"{{"status":"success","data":{{"id":1,"tx_ref":"3456787654","status":"successful","currency":"NGN",
        "amount":{amount},"charged_amount":{charged},"app_fee":{fee}}}}}"#
    );
    let _host = verifying_host().answer_text("GET", VERIFY, 200, &body).install();
    Flutterwave::verify("3456787654".into())
}

#[test]
fn amounts_in_responses_are_exact() {
    for (amount, charged, fee, minor) in [
        ("60", "60", "0.84", (6_000, 6_000, Some(84))),
        ("60.5", "61.35", "null", (6_050, 6_135, None)),
        ("\"60.50\"", "\"60.50\"", "\"0.8\"", (6_050, 6_050, Some(80))),
        ("1234567.89", "1234567.89", "18518.52", (123_456_789, 123_456_789, Some(1_851_852))),
        (
            "90071992547409.93",
            "90071992547409.93",
            "0",
            (9_007_199_254_740_993, 9_007_199_254_740_993, Some(0)),
        ),
        ("1e3", "1E+3", "1.40", (100_000, 100_000, Some(140))),
    ] {
        let payment = verify(amount, charged, fee).unwrap();
        let requested = payment.requested.unwrap();
        assert_eq!((requested.minor, payment.amount.minor, payment.fees_minor), minor, "{amount}");
    }
}

#[test]
fn inexact_and_invalid_amounts_are_unavailable() {
    for (amount, charged, fee) in [
        ("60.001", "60", "0"),
        ("59.99999999999999999999", "60", "0"),
        ("-60", "60", "0"),
        ("\"sixty\"", "60", "0"),
        ("{}", "60", "0"),
        ("null", "60", "0"),
    ] {
        let fault = verify(amount, charged, fee).unwrap_err();
        assert_eq!(fault.code, "unexpected-answer", "{amount} {charged} {fee}");
        assert!(fault.retryable);
    }
}

/// Charged amounts are rounded down, and fees up.
#[test]
fn fees_and_charged_amounts_are_rounded() {
    for (charged, fee, minor) in [
        ("60.845", "0.845", (6_084, Some(85))),
        ("\"60.849\"", "\"0.8401\"", (6_084, Some(85))),
        ("60.84", "1e-3", (6_084, Some(1))),
        ("59.999", "0", (5_999, Some(0))),
        ("60", "-1", (6_000, None)),
        ("60", "\"little\"", (6_000, None)),
    ] {
        let payment = verify("60", charged, fee).unwrap();
        assert_eq!((payment.amount.minor, payment.fees_minor), minor, "{charged} {fee}");
        assert_eq!(payment.requested, Some(naira(6_000)));
    }
}

/// The requested amount does not prove what was charged.
#[test]
fn a_success_without_a_charged_amount_is_unavailable() {
    for charged in ["null", "{}", "\"sixty\"", "-60"] {
        let fault = verify("60", charged, "0").unwrap_err();
        assert_eq!(
            (fault.code.as_str(), fault.retryable),
            ("unexpected-answer", true),
            "{charged}"
        );
    }
}

#[test]
fn amounts_in_requests_are_exact() {
    for (minor, written) in [
        (6_000, r#""amount":60,"#),
        (5, r#""amount":0.05,"#),
        (250_050, r#""amount":2500.50,"#),
        (123_456_789, r#""amount":1234567.89,"#),
        (9_007_199_254_740_993, r#""amount":90071992547409.93,"#),
    ] {
        let host = host().timeout("POST", "/tokenized-charges").install();
        let order = CardOrder {
            token: "t".into(),
            email: "demo@test.com".into(),
            amount: naira(minor),
            service_ref: "r".into(),
            narration: String::new(),
            metadata: String::new(),
        };
        assert_eq!(Flutterwave::charge(order).unwrap_err().code, "timeout");
        let sent = host.requests()[0].text();
        assert!(sent.contains(written), "{sent}");
    }
}
