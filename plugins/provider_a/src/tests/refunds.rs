use serde_json::{Value, json};
use tollhouse_plugin::partial_refunds::{self, PartialRefund, PartialRefundOrder};
use tollhouse_plugin::refunds::{Guest, Refund, RefundOrder, RefundStatus};
use tollhouse_plugin::types::{Fault, FaultCategory};

use super::{host, naira, parsed, success, transaction};
use crate::Paystack;

const LIST: &str = "/refund?transaction=1004723697";

fn order() -> RefundOrder {
    RefundOrder {
        service_ref: "T685".into(),
        transaction_id: "1004723697".into(),
        refund_ref: "R-1".into(),
        amount: naira(10000),
        reason: "Returned".into(),
    }
}

fn refund(id: u64, status: &str, transaction: Value) -> Value {
    json!({
        "transaction": transaction, "integration": 412829, "deducted_amount": 0, "channel": null,
        "merchant_note": "Returned", "status": status, "refunded_by": "test@me.com",
        "currency": "NGN", "amount": 10000, "fully_deducted": false, "id": id,
    })
}

fn of_ours() -> Value {
    json!({"id": 1004723697, "reference": "T685", "amount": 10000})
}

/// Starts a refund when these already exist; returns it and the number of refund requests sent.
fn start(existing: Value) -> (Refund, usize) {
    let host = host()
        .answer("GET", LIST, 200, success(existing))
        .answer("POST", "/refund", 200, success(refund(3018284, "pending", of_ours())))
        .install();
    let refund = Paystack::start(order()).unwrap();
    (refund, host.requests().iter().filter(|sent| sent.method == "POST").count())
}

#[test]
fn a_refund_is_requested_once() {
    let (made, posts) = start(json!([]));
    assert_eq!((made.status, made.provider_id.as_str()), (RefundStatus::Pending, "3018284"));
    assert_eq!(posts, 1);
    assert_eq!(parsed(&made.raw)["amount"], 10000);
}

#[test]
fn the_request_names_the_transaction_and_the_refund() {
    let host = host()
        .answer("GET", LIST, 200, success(json!([])))
        .answer("POST", "/refund", 200, success(refund(1, "pending", json!(1004723697))))
        .install();
    Paystack::start(order()).unwrap();
    let wanted = json!({
        "transaction": "1004723697", "amount": 10000, "currency": "NGN",
        "merchant_note": "Returned [R-1]",
    });
    assert_eq!(host.requests()[1].json(), wanted);
}

#[test]
fn a_retry_returns_the_existing_refund() {
    for named in [of_ours(), json!(1004723697), json!("T685"), json!(null)] {
        let (made, posts) = start(json!([refund(7, "processed", named)]));
        assert_eq!((made.status, made.provider_id.as_str()), (RefundStatus::Done, "7"));
        assert_eq!(posts, 0);
    }
}

#[test]
fn failed_refunds_and_refunds_of_other_transactions_are_ignored() {
    let others = json!({"id": 5, "reference": "T999"});
    let (made, posts) =
        start(json!([refund(7, "failed", of_ours()), refund(8, "processed", others)]));
    assert_eq!((made.provider_id.as_str(), posts), ("3018284", 1));
}

fn refund_with(changes: Value) -> Value {
    let mut refund = refund(7, "processed", of_ours());
    for (name, value) in changes.as_object().into_iter().flatten() {
        refund[name] = value.clone();
    }
    refund
}

/// Starts a refund when existing ones prevent it; returns the fault.
fn start_in_vain(existing: Value) -> Fault {
    let host = host().answer("GET", LIST, 200, success(existing)).install();
    let fault = Paystack::start(order()).unwrap_err();
    assert_eq!(host.requests().len(), 1);
    fault
}

#[test]
fn an_existing_partial_refund_is_partly_refunded() {
    for amount in [json!(4000), json!("4000"), json!(10001)] {
        let fault = start_in_vain(json!([refund_with(json!({"amount": amount}))]));
        assert_eq!(
            (fault.category, fault.code.as_str()),
            (FaultCategory::Refused, "partly-refunded")
        );
    }
    // It is unknown whether this refund covers the whole amount.
    assert!(start_in_vain(json!([refund_with(json!({"amount": null}))])).retryable);
}

#[test]
fn the_refund_is_recognized_by_its_note_or_its_amount() {
    let part = refund_with(json!({"amount": 1, "id": 8}));
    for ours in [json!({"amount": "10000"}), json!({"amount": 9000, "merchant_note": "x [R-1]"})] {
        let (made, posts) = start(json!([part, refund_with(ours)]));
        assert_eq!((made.provider_id.as_str(), posts), ("7", 0));
    }
    let theirs = json!({"amount": 9000, "merchant_note": "x [R-11]"});
    assert_eq!(start_in_vain(json!([refund_with(theirs)])).code, "partly-refunded");
}

/// Without the list, it is unknown whether the refund exists.
#[test]
fn without_the_list_no_refund_is_requested() {
    let start_with_list = |status: u16, response: Value| {
        let host = host().answer("GET", LIST, status, response).install();
        let fault = Paystack::start(order()).unwrap_err();
        assert_eq!(host.requests().len(), 1);
        fault
    };
    assert!(start_with_list(500, json!({})).retryable);
    assert!(start_with_list(400, refused("Invalid transaction amount")).retryable);
    assert!(start_with_list(200, success(json!({"odd": true}))).retryable);
}

fn refused(words: &str) -> Value {
    json!({"status": false, "message": words, "type": "validation_error", "code": "invalid"})
}

/// Starts a refund that is not listed and is refused with this message; the list then gets this
/// response.
fn start_refused(words: &str, then: (u16, Value)) -> Result<Refund, Fault> {
    let host = host()
        .answer("GET", LIST, 200, success(json!([])))
        .answer("POST", "/refund", 400, refused(words))
        .answer("GET", LIST, then.0, then.1)
        .install();
    let outcome = Paystack::start(order());
    assert_eq!(host.requests().len(), 3);
    outcome
}

/// A concurrent attempt whose response was lost may be listed only after the refusal.
#[test]
fn a_refusal_returns_the_existing_refund() {
    use FaultCategory::{Invalid, Refused};
    for (words, category) in [
        ("Transaction has been fully reversed", Refused),
        ("Refund amount cannot be more than what is left of the transaction amount", Invalid),
    ] {
        let made = start_refused(words, (200, success(json!([refund_with(json!({}))])))).unwrap();
        assert_eq!((made.provider_id.as_str(), made.status), ("7", RefundStatus::Done), "{words}");
        let fault = start_refused(words, (200, success(json!([])))).unwrap_err();
        assert_eq!((fault.category, fault.message.as_str()), (category, words));
        for status in [500, 400] {
            let unseen = start_refused(words, (status, refused("Not today"))).unwrap_err();
            assert_eq!(unseen.category, FaultCategory::Unavailable, "{words} {status}");
        }
        let part = json!([refund_with(json!({"amount": 1}))]);
        assert_eq!(start_refused(words, (200, success(part))).unwrap_err().code, "partly-refunded");
    }
}

#[test]
fn a_missing_transaction_id_is_looked_up() {
    let host = host()
        .answer("GET", "/transaction/verify/T685", 200, success(transaction()))
        .answer("GET", "/refund?transaction=4099260516", 200, success(json!([])))
        .answer("POST", "/refund", 200, success(refund(1, "processing", json!(4099260516_u64))))
        .install();
    Paystack::start(RefundOrder { transaction_id: String::new(), ..order() }).unwrap();
    assert_eq!(host.requests()[2].json()["transaction"], "4099260516");
}

fn check(status: u16, response: Value) -> Result<Refund, Fault> {
    let _host = host().answer("GET", "/refund/3018284", status, response).install();
    Paystack::check("3018284".into())
}

#[test]
fn statuses_are_mapped() {
    for (status_text, status, speaks) in [
        ("pending", RefundStatus::Pending, false),
        ("processing", RefundStatus::Pending, false),
        ("processed", RefundStatus::Done, false),
        ("failed", RefundStatus::Failed, true),
        ("needs-attention", RefundStatus::Pending, true),
        ("something new", RefundStatus::Pending, false),
    ] {
        let found = check(200, success(refund(3018284, status_text, of_ours()))).unwrap();
        assert_eq!((found.status, !found.message.is_empty()), (status, speaks), "{status_text}");
    }
}

#[test]
fn unknown_and_unreadable_refunds_are_faults() {
    let unknown = json!({"status": false, "message": "Refund not found"});
    assert_eq!(check(404, unknown).unwrap_err().category, FaultCategory::NotFound);
    assert_eq!(check(200, success(json!({}))).unwrap_err().category, FaultCategory::Unavailable);
}

/// Requests a partial refund when these refunds already exist, of which the host knows the one with
/// id 7; returns it and the number of refund requests sent.
fn start_part(existing: Value) -> (PartialRefund, usize) {
    let host = host()
        .answer("GET", LIST, 200, success(existing))
        .answer("POST", "/refund", 200, success(refund(3018284, "pending", of_ours())))
        .install();
    let RefundOrder { service_ref, transaction_id, refund_ref, reason, .. } = order();
    let order = PartialRefundOrder {
        service_ref,
        transaction_id,
        refund_ref,
        reason,
        amount: naira(4000),
        earlier: vec!["7".to_owned()],
    };
    let made = <Paystack as partial_refunds::Guest>::start(order).unwrap();
    (made, host.requests().iter().filter(|sent| sent.method == "POST").count())
}

#[test]
fn a_part_is_requested_once_beside_earlier_parts() {
    let of = |id: u64, amount: u64, note: &str| {
        refund_with(json!({"id": id, "amount": amount, "merchant_note": note}))
    };
    let earlier = of(7, 4000, "x [R-0]");
    for (existing, id, requests) in [
        (json!([earlier]), "3018284", 1),
        (json!([earlier, of(8, 3000, "")]), "3018284", 1),
        (json!([earlier, of(8, 4000, "")]), "8", 0),
        (json!([earlier, of(8, 4000, ""), of(9, 1, "x [R-1]")]), "9", 0),
    ] {
        let (made, posts) = start_part(existing.clone());
        assert_eq!((made.provider_id.as_str(), posts), (id, requests), "{existing}");
    }
}
