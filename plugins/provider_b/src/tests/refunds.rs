use serde_json::{Value, json};
use tollhouse_plugin::partial_refunds::{self, PartialRefund, PartialRefundOrder};
use tollhouse_plugin::refunds::{Guest, Refund, RefundOrder, RefundStatus};
use tollhouse_plugin::types::{Fault, FaultCategory, Money};

use super::{VERIFY, host, naira, parsed, refused, success, transaction};
use crate::Flutterwave;

const LIST: &str = "/refunds?id=5708&page=1";
const START: &str = "/transactions/5708/refund";

fn order() -> RefundOrder {
    RefundOrder {
        service_ref: "3456787654".into(),
        transaction_id: "5708".into(),
        refund_ref: "R-1".into(),
        amount: naira(500_000),
        reason: "Returned".into(),
    }
}

/// A refund as returned when it is created.
fn refund(id: u64, status: &str) -> Value {
    json!({
        "id": id, "account_id": 73362, "tx_id": 5708, "flw_ref": "URF_1577867664541_3572735",
        "wallet_id": 74639, "amount_refunded": 5000, "status": status,
        "destination": "payment_source", "meta": {"source": "availablebalance"},
        "created_at": "2020-01-24T09:18:37.366Z",
    })
}

fn refund_with(changes: Value) -> Value {
    let mut refund = refund(7, "completed-mpgs");
    for (name, value) in changes.as_object().into_iter().flatten() {
        refund[name] = value.clone();
    }
    refund
}

/// Starts a refund when these already exist; returns it and the number of refund requests sent.
fn start(existing: Value) -> (Refund, usize) {
    let host = host()
        .answer("GET", LIST, 200, success(existing))
        .answer("POST", START, 200, success(refund(8612, "completed")))
        .install();
    let refund = Flutterwave::start(order()).unwrap();
    (refund, host.requests().iter().filter(|sent| sent.method == "POST").count())
}

/// "completed" only means initiated.
#[test]
fn a_refund_is_requested_once() {
    let (made, posts) = start(json!([]));
    assert_eq!((made.status, made.provider_id.as_str()), (RefundStatus::Pending, "8612"));
    assert_eq!(posts, 1);
    assert_eq!(parsed(&made.raw)["amount_refunded"], 5000);
}

#[test]
fn the_request_names_the_refund_and_its_amount() {
    let host = host()
        .answer("GET", LIST, 404, refused("No refunds found"))
        .answer("POST", START, 200, success(refund(8612, "completed")))
        .install();
    Flutterwave::start(RefundOrder { amount: naira(500_050), ..order() }).unwrap();
    let sent = host.requests()[1].text();
    assert_eq!(sent, r#"{"amount":5000.50,"comments":"Returned [R-1]"}"#);
}

#[test]
fn a_retry_returns_the_existing_refund() {
    for named in [
        json!({"tx_id": 5708}),
        json!({"tx_id": "5708"}),
        json!({"tx_id": null, "transaction_id": 5708}),
        json!({"tx_id": 5708, "transaction_id": 5708}),
        json!({"tx_id": null, "TransactionId": 5708, "amount_refunded": null, "AmountRefunded": 5000}),
        json!({"TransactionId": 5708, "AmountRefunded": "5000.00", "FlwRef": "URF_1"}),
    ] {
        let (made, posts) = start(json!([refund_with(named)]));
        assert_eq!((made.status, made.provider_id.as_str()), (RefundStatus::Done, "7"));
        assert_eq!(posts, 0);
    }
}

#[test]
fn failed_refunds_and_refunds_of_other_transactions_are_ignored() {
    let (failed, others) = (refund(7, "failed"), refund_with(json!({"tx_id": 5709})));
    let (made, posts) = start(json!([failed, others]));
    assert_eq!((made.provider_id.as_str(), posts), ("8612", 1));
}

/// Starts a refund when existing ones prevent it; returns the fault.
fn start_in_vain(existing: Value) -> Fault {
    let host = host().answer("GET", LIST, 200, success(existing)).install();
    let fault = Flutterwave::start(order()).unwrap_err();
    assert_eq!(host.requests().len(), 1);
    fault
}

#[test]
fn an_existing_partial_refund_is_partly_refunded() {
    for amount in [json!(4000), json!("4999.99"), json!(5000.01)] {
        let fault = start_in_vain(json!([refund_with(json!({"amount_refunded": amount}))]));
        let found = (fault.category, fault.code.as_str());
        assert_eq!(found, (FaultCategory::Refused, "partly-refunded"));
    }
    // It is unknown whether this refund covers the whole amount, or belongs to the transaction.
    for unclear in [json!({"amount_refunded": null}), json!({"tx_id": null}), json!({"id": null})] {
        assert!(start_in_vain(json!([refund_with(unclear)])).retryable);
    }
}

#[test]
fn amounts_without_decimals_are_compared_in_their_minor_unit() {
    let francs = |minor| Money { minor, currency: "XOF".into() };
    for (minor, found) in [(5_000, true), (500_000, false)] {
        let host =
            host().answer("GET", LIST, 200, success(json!([refund(7, "completed")]))).install();
        let started = Flutterwave::start(RefundOrder { amount: francs(minor), ..order() });
        assert_eq!(started.is_ok(), found, "{started:?}");
        assert_eq!(host.requests().len(), 1);
    }
}

/// Lists use another name for the note.
#[test]
fn the_refund_is_recognized_by_its_note_or_its_amount() {
    let part = refund_with(json!({"amount_refunded": 1, "id": 8}));
    for ours in [
        json!({"amount_refunded": "5000.00"}),
        json!({"amount_refunded": 4500, "comment": "x [R-1]"}),
        json!({"amount_refunded": 4500, "comments": "x [R-1]"}),
    ] {
        let (made, posts) = start(json!([part, refund_with(ours)]));
        assert_eq!((made.provider_id.as_str(), posts), ("7", 0));
    }
    let theirs = json!({"amount_refunded": 4500, "comment": "x [R-11]"});
    assert_eq!(start_in_vain(json!([refund_with(theirs)])).code, "partly-refunded");
}

/// Without the list, it is unknown whether the refund exists.
#[test]
fn without_the_list_no_refund_is_requested() {
    let start_with_list = |status: u16, response: Value| {
        let host = host().answer("GET", LIST, status, response).install();
        let fault = Flutterwave::start(order()).unwrap_err();
        assert_eq!(host.requests().len(), 1);
        fault
    };
    assert!(start_with_list(500, json!({})).retryable);
    assert!(start_with_list(200, success(json!({"odd": true}))).retryable);
}

fn page(number: u64, of: u64, refunds: Value) -> Value {
    let info = json!({"total": 40, "current_page": number, "total_pages": of});
    json!({"status": "success", "message": "ok", "meta": {"page_info": info}, "data": refunds})
}

#[test]
fn every_page_of_the_list_is_read() {
    let others = json!([refund_with(json!({"tx_id": 1}))]);
    let host = host()
        .answer("GET", LIST, 200, page(1, 2, others))
        .answer("GET", "/refunds?id=5708&page=2", 200, page(2, 2, json!([refund_with(json!({}))])))
        .install();
    assert_eq!(Flutterwave::start(order()).unwrap().provider_id, "7");
    assert_eq!(host.requests().len(), 2);
}

#[test]
fn an_endless_list_is_unavailable() {
    let host = host().answer("GET", "/refunds", 200, page(1, 1000, json!([]))).install();
    assert!(Flutterwave::start(order()).unwrap_err().retryable);
    assert_eq!(host.requests().len(), 10);
}

/// The refunds that cannot be listed may include this order's.
#[test]
fn an_incomplete_list_is_unavailable() {
    let others = json!([refund_with(json!({"tx_id": 1}))]);
    let breaks_off = host().answer("GET", LIST, 200, page(1, 2, others)).answer(
        "GET",
        "/refunds?id=5708&page=2",
        404,
        refused("No refunds found"),
    );
    let is_refused = host().answer("GET", LIST, 400, refused("Not today"));
    for host in [breaks_off, is_refused] {
        let host = host.install();
        let fault = Flutterwave::start(order()).unwrap_err();
        assert_eq!(fault.category, FaultCategory::Unavailable);
        assert!(host.requests().iter().all(|sent| sent.method == "GET"));
    }
}

/// Starts a refund that is not listed and is refused with this message; the list then gets this
/// response.
fn start_refused(words: &str, then: (u16, Value)) -> Result<Refund, Fault> {
    let host = host()
        .answer("GET", LIST, 200, success(json!([])))
        .answer("POST", START, 400, refused(words))
        .answer("GET", LIST, then.0, then.1)
        .install();
    let outcome = Flutterwave::start(order());
    assert_eq!(host.requests().len(), 3);
    outcome
}

const REFUNDED: [&str; 4] = [
    "Transaction has been refunded already",
    "Transaction already refunded",
    "This transaction was fully refunded",
    "Duplicate refund request",
];

#[test]
fn a_refusal_returns_the_existing_refund() {
    for words in REFUNDED.into_iter().chain(["Not today"]) {
        let made = start_refused(words, (200, success(json!([refund_with(json!({}))])))).unwrap();
        assert_eq!((made.provider_id.as_str(), made.status), ("7", RefundStatus::Done), "{words}");
        for status in [500, 401, 400] {
            let unseen = start_refused(words, (status, json!({}))).unwrap_err();
            assert_eq!(unseen.category, FaultCategory::Unavailable, "{words} {status}");
        }
        let part = json!([refund_with(json!({"amount_refunded": 1}))]);
        assert_eq!(start_refused(words, (200, success(part))).unwrap_err().code, "partly-refunded");
    }
}

/// The list may lag behind.
#[test]
fn a_refund_reported_as_existing_but_not_listed_is_unavailable() {
    for words in REFUNDED {
        let fault = start_refused(words, (200, success(json!([])))).unwrap_err();
        assert_eq!(
            (fault.category, fault.retryable),
            (FaultCategory::Unavailable, true),
            "{words}"
        );
    }
    for words in ["Balance too low for this refund", "Refunds have been switched off"] {
        let fault = start_refused(words, (200, success(json!([])))).unwrap_err();
        assert!(fault.is_refusal() && fault.message == words, "{fault:?}");
    }
}

#[test]
fn a_missing_transaction_id_is_looked_up() {
    let host = host()
        .answer("GET", VERIFY, 200, success(transaction()))
        .answer("GET", "/refunds", 200, success(json!([])))
        .answer("POST", "/transactions/782728102/refund", 200, success(refund(1, "completed")))
        .install();
    Flutterwave::start(RefundOrder { transaction_id: String::new(), ..order() }).unwrap();
    assert_eq!(host.requests().len(), 3);
}

fn check(status: u16, response: Value) -> Result<Refund, Fault> {
    let _host = host().answer("GET", "/refunds/8612", status, response).install();
    Flutterwave::check("8612".into())
}

#[test]
fn statuses_are_mapped() {
    for (status_text, status, speaks, logs) in [
        ("completed", RefundStatus::Pending, false, 0),
        ("completed-mpgs", RefundStatus::Done, false, 0),
        ("Completed-MPGS", RefundStatus::Done, false, 0),
        ("completed-bank-transfer", RefundStatus::Done, false, 0),
        ("pending", RefundStatus::Pending, false, 0),
        ("processing", RefundStatus::Pending, false, 0),
        ("failed", RefundStatus::Failed, true, 0),
        ("FAILED", RefundStatus::Failed, true, 0),
        ("something new", RefundStatus::Pending, false, 1),
    ] {
        let response = success(refund(8612, status_text));
        let host = host().answer("GET", "/refunds/8612", 200, response).install();
        let found = Flutterwave::check("8612".into()).unwrap();
        assert_eq!((found.status, !found.message.is_empty()), (status, speaks), "{status_text}");
        assert_eq!(host.logs().len(), logs, "{status_text}");
    }
}

#[test]
fn unknown_and_unreadable_refunds_are_faults() {
    let unknown = refused("Refund not found");
    assert_eq!(check(404, unknown).unwrap_err().category, FaultCategory::NotFound);
    assert_eq!(check(200, success(json!({}))).unwrap_err().category, FaultCategory::Unavailable);
}

/// Requests a partial refund when these refunds already exist, of which the host knows the one with
/// id 7; returns it and the number of refund requests sent.
fn start_part(existing: Value) -> (PartialRefund, usize) {
    let host = host()
        .answer("GET", LIST, 200, success(existing))
        .answer("POST", START, 200, success(refund(8612, "completed")))
        .install();
    let RefundOrder { service_ref, transaction_id, refund_ref, reason, .. } = order();
    let order = PartialRefundOrder {
        service_ref,
        transaction_id,
        refund_ref,
        reason,
        amount: naira(400_000),
        earlier: vec!["7".to_owned()],
    };
    let made = <Flutterwave as partial_refunds::Guest>::start(order).unwrap();
    (made, host.requests().iter().filter(|sent| sent.method == "POST").count())
}

#[test]
fn a_part_is_requested_once_beside_earlier_parts() {
    let of = |id: u64, amount: u64, comment: &str| {
        refund_with(json!({"id": id, "amount_refunded": amount, "comment": comment}))
    };
    let earlier = of(7, 4000, "x [R-0]");
    for (existing, id, requests) in [
        (json!([earlier]), "8612", 1),
        (json!([earlier, of(8, 3000, "")]), "8612", 1),
        (json!([earlier, of(8, 4000, "")]), "8", 0),
        (json!([earlier, of(8, 4000, ""), of(9, 1, "x [R-1]")]), "9", 0),
    ] {
        let (made, posts) = start_part(existing.clone());
        assert_eq!((made.provider_id.as_str(), posts), (id, requests), "{existing}");
    }
}
