use serde_json::{Value, json};
use tollhouse_plugin::partial_refunds::{self, PartialRefundOrder, PartialRefundStatus};
use tollhouse_plugin::refunds::{Guest, Refund, RefundOrder, RefundStatus};
use tollhouse_plugin::testing::FakeHost;
use tollhouse_plugin::types::{Fault, FaultCategory, Money};

use super::{QUERY, host, naira, parsed, refused, success, transaction};
use crate::Monnify;

const FIND: &str = "/api/v1/refunds/R-1";
const START: &str = "/api/v1/refunds/initiate-refund";

fn order() -> RefundOrder {
    RefundOrder {
        service_ref: "pay-1".into(),
        transaction_id: "MNFY|20220121154928|000001".into(),
        refund_ref: "R-1".into(),
        amount: naira(40333),
        reason: "Returned".into(),
    }
}

fn refund(status: &str) -> Value {
    success(json!({
        "refundReference": "R-1", "transactionReference": "MNFY|20220121154928|000001",
        "refundReason": "Returned", "customerNote": "Refund", "refundAmount": 403.33,
        "refundType": "FULL_REFUND", "refundStatus": status, "refundStrategy": "MERCHANT_WALLET",
        "comment": "x", "completedOn": "", "createdOn": "21/01/2022 03:40:00 PM",
    }))
}

fn unknown() -> Value {
    refused("R7", "No refund was initiated with the reference")
}

/// A host on which the refund does not exist yet.
fn fresh() -> FakeHost {
    host().answer("GET", FIND, 404, unknown())
}

#[test]
fn a_refund_is_requested_once() {
    let host = fresh().answer("POST", START, 200, refund("IN_PROGRESS")).install();
    let made = Monnify::start(order()).unwrap();
    assert_eq!((made.status, made.provider_id.as_str()), (RefundStatus::Pending, "R-1"));
    assert_eq!(parsed(&made.raw)["refundAmount"], 403.33);
    let wanted = json!({
        "transactionReference": "MNFY|20220121154928|000001", "refundReference": "R-1",
        "refundAmount": 403.33, "refundReason": "Returned", "customerNote": "Refund",
    });
    assert_eq!(host.requests()[1].json(), wanted);
}

/// A failed refund is returned too, because its reference is used up.
#[test]
fn a_retry_returns_the_existing_refund() {
    for (word, status) in [
        ("IN_PROGRESS", RefundStatus::Pending),
        ("COMPLETED", RefundStatus::Done),
        ("FAILED", RefundStatus::Failed),
    ] {
        let host = host().answer("GET", FIND, 200, refund(word)).install();
        let made = Monnify::start(order()).unwrap();
        assert_eq!((made.status, made.provider_id.as_str()), (status, "R-1"));
        assert_eq!(host.requests().len(), 1);
    }
}

/// Without a response to the query, it is unknown whether the refund exists.
#[test]
fn without_a_lookup_no_refund_is_requested() {
    for (status, response) in [
        (500, json!({})),
        (200, success(json!({}))),
        (404, json!({})),
        (400, refused("99", "Not today")),
    ] {
        let host = host().answer("GET", FIND, status, response).install();
        assert!(Monnify::start(order()).unwrap_err().retryable, "{status}");
        assert_eq!(host.requests().len(), 1);
    }
}

#[test]
fn a_reference_used_concurrently_is_looked_up() {
    for duplicate in [refused("R9", "Refund reference exists"), refused("99", "Duplicate refund")] {
        let host = fresh()
            .answer("GET", FIND, 200, refund("IN_PROGRESS"))
            .answer("POST", START, 400, duplicate.clone())
            .install();
        assert_eq!(Monnify::start(order()).unwrap().provider_id, "R-1");
        assert_eq!(host.requests().len(), 3);
        drop(host);
        // The refund may exist, so it must not be reported as refused.
        let _host = fresh().answer("POST", START, 400, duplicate).install();
        assert!(Monnify::start(order()).unwrap_err().retryable);
    }
}

/// A concurrent attempt may cause any refusal, not only that of a duplicate.
#[test]
fn a_refund_found_after_a_refusal_is_returned() {
    for (code, found) in [("R3", 200), ("R12", 200), ("R12", 500), ("R12", 400)] {
        let _host = fresh()
            .answer("GET", FIND, found, if found == 200 { refund("PENDING") } else { json!({}) })
            .answer("POST", START, 400, refused(code, "No"))
            .install();
        match Monnify::start(order()) {
            Ok(made) => assert_eq!((made.provider_id.as_str(), found), ("R-1", 200)),
            Err(fault) => assert!(fault.retryable && found != 200, "{fault:?}"),
        }
    }
}

fn start_with_response(status: u16, response: Value) -> Fault {
    let _host = fresh().answer("POST", START, status, response).install();
    Monnify::start(order()).unwrap_err()
}

#[test]
fn refund_codes_are_mapped_to_faults() {
    use FaultCategory::{Invalid, NotFound, Refused, Unavailable};
    for (code, category, ours) in [
        ("R1", NotFound, "R1"),
        ("R2", Refused, "R2"),
        ("R3", Invalid, "R3"),
        ("R4", Invalid, "R4"),
        ("R5", Refused, "R5"),
        ("R6", Refused, "R6"),
        ("R8", Refused, "R8"),
        ("R10", Unavailable, "R10"),
        ("R11", Unavailable, "R11"),
        ("R12", Refused, "partly-refunded"),
        ("99", Refused, "99"),
    ] {
        let fault = start_with_response(400, refused(code, "No"));
        assert_eq!((fault.category, fault.code.as_str()), (category, ours), "{code}");
        assert_eq!(fault.field(), (category == Invalid).then_some("amount"));
        assert_eq!(fault.retryable, category == Unavailable);
    }
}

#[test]
fn less_than_100_naira_is_invalid_and_not_sent() {
    let host = fresh().install();
    let fault = Monnify::start(RefundOrder { amount: naira(9_999), ..order() }).unwrap_err();
    assert_eq!((fault.category, fault.field()), (FaultCategory::Invalid, Some("amount")));
    assert!(fault.message.contains("100 naira"));
    let dollars = Money { minor: 20_000, currency: "USD".into() };
    let fault = Monnify::start(RefundOrder { amount: dollars, ..order() }).unwrap_err();
    assert_eq!(fault.field(), Some("currency"));
    assert!(host.requests().iter().all(|sent| sent.method == "GET"));
    drop(host);
    let _host = fresh().answer("POST", START, 200, refund("PENDING")).install();
    assert!(Monnify::start(RefundOrder { amount: naira(10_000), ..order() }).is_ok());
}

#[test]
fn reasons_are_never_empty_or_too_long() {
    for (reason, sent) in [("é".repeat(80), "é".repeat(64)), (" ".into(), "Refund".into())] {
        let host = fresh().answer("POST", START, 200, refund("PENDING")).install();
        Monnify::start(RefundOrder { reason, ..order() }).unwrap();
        assert_eq!(host.requests()[1].json()["refundReason"], sent);
    }
}

#[test]
fn a_missing_transaction_id_is_looked_up() {
    let host = fresh()
        .answer("GET", QUERY, 200, success(transaction()))
        .answer("POST", START, 200, refund("IN_PROGRESS"))
        .install();
    Monnify::start(RefundOrder { transaction_id: String::new(), ..order() }).unwrap();
    let sent = host.requests()[2].json();
    assert_eq!(sent["transactionReference"], "MNFY|20220121154928|000001");
}

fn check(status: u16, response: Value) -> Result<Refund, Fault> {
    let _host = host().answer("GET", FIND, status, response).install();
    Monnify::check("R-1".into())
}

#[test]
fn statuses_are_mapped() {
    for (status_text, status, speaks, logs) in [
        ("IN_PROGRESS", RefundStatus::Pending, false, 0),
        ("PENDING", RefundStatus::Pending, false, 0),
        ("COMPLETED", RefundStatus::Done, false, 0),
        ("Completed", RefundStatus::Done, false, 0),
        ("FAILED", RefundStatus::Failed, true, 0),
        ("failed", RefundStatus::Failed, true, 0),
        ("SOMETHING_NEW", RefundStatus::Pending, false, 1),
    ] {
        let host = host().answer("GET", FIND, 200, refund(status_text)).install();
        let found = Monnify::check("R-1".into()).unwrap();
        assert_eq!((found.status, !found.message.is_empty()), (status, speaks), "{status_text}");
        assert_eq!(host.logs().len(), logs, "{status_text}");
    }
}

#[test]
fn unknown_and_unreadable_refunds_are_faults() {
    assert_eq!(check(404, unknown()).unwrap_err().category, FaultCategory::NotFound);
    assert_eq!(check(400, unknown()).unwrap_err().category, FaultCategory::NotFound);
    assert_eq!(check(200, success(json!({}))).unwrap_err().category, FaultCategory::Unavailable);
}

#[test]
fn a_part_has_a_reference_of_its_own() {
    let host = fresh().answer("POST", START, 200, refund("IN_PROGRESS")).install();
    let RefundOrder { service_ref, transaction_id, refund_ref, reason, .. } = order();
    let part = PartialRefundOrder {
        service_ref,
        transaction_id,
        refund_ref,
        reason,
        amount: naira(10_000),
        earlier: vec!["R-0".to_owned()],
    };
    let made = <Monnify as partial_refunds::Guest>::start(part).unwrap();
    assert_eq!((made.status, made.provider_id.as_str()), (PartialRefundStatus::Pending, "R-1"));
    let sent = host.requests()[1].json();
    assert_eq!((&sent["refundReference"], &sent["refundAmount"]), (&json!("R-1"), &json!(100)));
}
