use serde_json::{Value, json};
use tollhouse_plugin::log::Level;
use tollhouse_plugin::payments::{Payment, PaymentStatus};
use tollhouse_plugin::verification::Guest;

use super::{QUERY, host, naira, told, transaction_with};
use crate::Monnify;

fn verify(changes: Value) -> (Payment, Vec<(Level, String)>) {
    let answer = told(transaction_with(changes));
    let host = host().answer("GET", QUERY, 200, answer).install();
    (Monnify::verify("pay-1".into()).unwrap(), host.logs())
}

#[test]
fn statuses() {
    for (told, status, logs) in [
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
        let (payment, logged) = verify(json!({"paymentStatus": told}));
        assert_eq!((payment.status, logged.len()), (status, logs), "{told}");
        assert!(logged.iter().all(|(level, _)| *level == Level::Warn));
    }
}

/// What was asked for is there; what is more is noted.
#[test]
fn too_much_is_enough() {
    let (payment, _) = verify(json!({"paymentStatus": "OVERPAID", "amountPaid": "500.00"}));
    assert_eq!((payment.amount, payment.requested), (naira(50000), Some(naira(40333))));
    assert_eq!(payment.message, "OVERPAID: 500 of 403.33 NGN");
}

#[test]
fn a_part_is_not_enough() {
    let (payment, _) = verify(json!({"paymentStatus": "PARTIALLY_PAID", "amountPaid": 100}));
    assert_eq!(payment.status, PaymentStatus::Pending);
    assert_eq!((payment.amount, payment.requested), (naira(10000), None));
    assert_eq!((payment.paid_at, payment.fees_minor), (None, None));
    assert_eq!(payment.message, "PARTIALLY_PAID: 100 of 403.33 NGN");
}

/// Whatever the status says: the host compares what was asked for, so less than that must not be told to have been it.
#[test]
fn less_than_was_asked_for_does_not_pass_for_it() {
    let (payment, _) = verify(json!({"amountPaid": "403.32"}));
    assert_eq!((payment.amount, payment.requested), (naira(40332), None));
}

#[test]
fn what_is_not_paid_yet_has_no_moment_and_no_fees() {
    for status in ["PENDING", "FAILED", "EXPIRED"] {
        let (payment, _) = verify(json!({"paymentStatus": status}));
        assert_eq!((payment.paid_at, payment.fees_minor), (None, None));
        assert_eq!(payment.message, status);
    }
}
