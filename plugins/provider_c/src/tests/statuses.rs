use serde_json::{Value, json};
use tollhouse_plugin::log::Level;
use tollhouse_plugin::payments::{Payment, PaymentStatus};
use tollhouse_plugin::verification::Guest;

use super::{QUERY, host, naira, success, transaction_with};
use crate::Monnify;

fn verify(changes: Value) -> (Payment, Vec<(Level, String)>) {
    let response = success(transaction_with(changes));
    let host = host().answer("GET", QUERY, 200, response).install();
    (Monnify::verify("pay-1".into()).unwrap(), host.logs())
}

#[test]
fn statuses_are_mapped() {
    for (value, status, logs) in [
        ("PAID", PaymentStatus::Success, 0),
        ("OVERPAID", PaymentStatus::Success, 0),
        ("PARTIALLY_PAID", PaymentStatus::Pending, 0),
        ("PENDING", PaymentStatus::Pending, 0),
        ("FAILED", PaymentStatus::Failed, 0),
        ("CANCELLED", PaymentStatus::Failed, 0),
        ("EXPIRED", PaymentStatus::Failed, 0),
        ("REVERSED", PaymentStatus::Reversed, 0),
        ("SOMETHING_NEW", PaymentStatus::Pending, 1),
        ("", PaymentStatus::Pending, 1),
    ] {
        let (payment, logged) = verify(json!({"paymentStatus": value}));
        assert_eq!((payment.status, logged.len()), (status, logs), "{value}");
        assert!(logged.iter().all(|(level, _)| *level == Level::Warn));
    }
}

/// The requested amount was paid; the surplus is noted in the message.
#[test]
fn an_overpayment_is_a_success() {
    let (payment, _) = verify(json!({"paymentStatus": "OVERPAID", "amountPaid": "500.00"}));
    assert_eq!((payment.amount, payment.requested), (naira(50000), Some(naira(40333))));
    assert_eq!(payment.message, "OVERPAID: 500 of 403.33 NGN");
}

#[test]
fn a_partial_payment_is_pending() {
    let (payment, _) = verify(json!({"paymentStatus": "PARTIALLY_PAID", "amountPaid": 100}));
    assert_eq!(payment.status, PaymentStatus::Pending);
    assert_eq!((payment.amount, payment.requested), (naira(10000), None));
    assert_eq!((payment.paid_at, payment.fees_minor), (None, None));
    assert_eq!(payment.message, "PARTIALLY_PAID: 100 of 403.33 NGN");
}

/// The host compares the requested amount, so a smaller payment must not report it, whatever the
/// status is.
#[test]
fn a_smaller_payment_does_not_report_the_requested_amount() {
    let (payment, _) = verify(json!({"amountPaid": "403.32"}));
    assert_eq!((payment.amount, payment.requested), (naira(40332), None));
}

#[test]
fn an_unpaid_transaction_has_no_payment_time_and_no_fees() {
    for status in ["PENDING", "FAILED", "EXPIRED"] {
        let (payment, _) = verify(json!({"paymentStatus": status}));
        assert_eq!((payment.paid_at, payment.fees_minor), (None, None));
        assert_eq!(payment.message, status);
    }
}
