//! The transaction of these tests took 60 NGN.

use serde_json::{Value, json};
use tollhouse_plugin::log::Level;
use tollhouse_plugin::payments::{Payment, PaymentStatus};
use tollhouse_plugin::testing::FakeHost;
use tollhouse_plugin::types::{Fault, FaultCategory};
use tollhouse_plugin::verification::Guest;

use super::{VERIFY, host, refused, success, transaction, transaction_with};
use crate::Flutterwave;

const REFUNDS: &str = "/refunds?id=782728102&page=1";
const CHARGEBACKS: &str = "/chargebacks?id=782728102&page=1";

/// A refund as listed.
fn refund(amount: impl Into<Value>, status: &str) -> Value {
    json!({
        "id": 75923, "account_id": 73362, "tx_id": 782728102, "flw_ref": "URF_1577867664541_3572735",
        "wallet_id": 74639, "amount_refunded": amount.into(), "status": status,
        "destination": "payment_source", "meta": "{\"source\":\"availablebalance\"}",
        "transaction_id": 782728102, "comment": "late", "settlement_id": "NEW",
        "created_at": "2023-01-24T09:18:37.000Z",
    })
}

/// A chargeback as listed.
fn chargeback(amount: impl Into<Value>, status: &str) -> Value {
    json!({
        "id": 1390, "amount": amount.into(), "flw_ref": "FLW-MOCK-0a6b", "status": status,
        "stage": "new", "comment": "Not received", "meta": {"uploaded_proof": null, "history": []},
        "due_date": "2023-01-23T15:59:59.000Z", "settlement_id": "N/A",
        "created_at": "2023-01-22T19:01:28.000Z", "transaction_id": 782728102,
        "tx_ref": "3456787654",
    })
}

fn with(mut item: Value, changes: Value) -> Value {
    for (name, value) in changes.as_object().into_iter().flatten() {
        item[name] = value.clone();
    }
    item
}

fn host_with(data: Value, refunds: Value, chargebacks: Value) -> FakeHost {
    host()
        .answer("GET", VERIFY, 200, success(data))
        .answer("GET", REFUNDS, 200, success(refunds))
        .answer("GET", CHARGEBACKS, 200, success(chargebacks))
}

fn verify(host: FakeHost) -> Result<Payment, Fault> {
    let _host = host.install();
    Flutterwave::verify("3456787654".into())
}

fn status(refunds: Value, chargebacks: Value) -> PaymentStatus {
    verify(host_with(transaction(), refunds, chargebacks)).unwrap().status
}

#[test]
fn a_payment_whose_whole_amount_was_returned_is_reversed() {
    use PaymentStatus::{Reversed, Success};
    for (refunds, chargebacks, expected) in [
        (json!([]), json!([]), Success),
        (json!([refund(60, "completed-mpgs")]), json!([]), Reversed),
        (json!([refund(60, "completed-bank-transfer")]), json!([]), Reversed),
        (json!([refund("60.00", "Completed")]), json!([]), Reversed),
        (json!([refund(70, "completed")]), json!([]), Reversed),
        (json!([refund("59.99", "completed")]), json!([]), Success),
        (json!([refund(0, "completed")]), json!([]), Success),
        (json!([refund(60, "failed")]), json!([]), Success),
        (json!([refund(60, "pending")]), json!([]), Success),
        (json!([refund(60, "pending-momo")]), json!([]), Success),
        (json!([refund(60, "processing")]), json!([]), Success),
        (json!([refund(60, "completedness")]), json!([]), Success),
        (json!([refund(20, "completed"), refund(40, "completed-mpgs")]), json!([]), Reversed),
        (json!([refund(20, "completed"), refund(40, "failed")]), json!([]), Success),
        (json!([]), json!([chargeback(60, "lost")]), Reversed),
        (json!([]), json!([chargeback("60.00", "ACCEPTED")]), Reversed),
        (json!([]), json!([chargeback("59.99", "lost")]), Success),
        (json!([]), json!([chargeback(60, "initiated")]), Success),
        (json!([]), json!([chargeback(60, "declined")]), Success),
        (json!([]), json!([chargeback(60, "won")]), Success),
        // A dispute that was declined in its first stage and lost in a later one.
        (json!([]), json!([chargeback(60, "lost"), chargeback(60, "declined")]), Reversed),
        (json!([]), json!([chargeback(20, "lost"), chargeback(40, "accepted")]), Reversed),
        (json!([]), json!([chargeback(20, "lost"), chargeback(40, "won")]), Success),
        (json!([refund(20, "completed-mpgs")]), json!([chargeback(40, "lost")]), Reversed),
        (json!([refund(20, "completed-mpgs")]), json!([chargeback("39.99", "lost")]), Success),
        (json!([refund(20, "pending")]), json!([chargeback(40, "lost")]), Success),
    ] {
        assert_eq!(
            status(refunds.clone(), chargebacks.clone()),
            expected,
            "{refunds} {chargebacks}"
        );
    }
}

#[test]
fn amounts_without_decimals_are_compared_in_their_minor_unit() {
    use PaymentStatus::{Reversed, Success};
    let francs =
        json!({"currency": "XOF", "amount": 6000, "charged_amount": 6000, "app_fee": 83.2});
    for (refunds, chargebacks, expected) in [
        (json!([refund(60, "completed")]), json!([]), Success),
        (json!([]), json!([chargeback(60, "lost")]), Success),
        (json!([refund(6000, "completed")]), json!([]), Reversed),
        (json!([refund(2000, "completed")]), json!([chargeback(4000, "lost")]), Reversed),
    ] {
        let host = host_with(transaction_with(francs.clone()), refunds, chargebacks);
        let payment = verify(host).unwrap();
        assert_eq!((payment.status, payment.fees_minor), (expected, Some(84)));
    }
}

/// Flutterwave may keep the fees that the payer bears. An amount below the requested one is all
/// that was taken.
#[test]
fn the_smaller_of_the_requested_and_the_charged_amount_counts() {
    use PaymentStatus::{Reversed, Success};
    for (charged, returned, expected) in [
        (json!(60.84), json!(60), Reversed),
        (json!(60.84), json!(59.99), Success),
        (json!(30), json!(30), Reversed),
        (json!(30), json!(29.99), Success),
        (json!(0), json!(0), Success),
    ] {
        let data = || transaction_with(json!({"charged_amount": charged}));
        let refunds = json!([refund(returned.clone(), "completed-mpgs")]);
        let refunded = verify(host_with(data(), refunds, json!([]))).unwrap();
        let chargebacks = json!([chargeback(returned.clone(), "lost")]);
        let charged_back = verify(host_with(data(), json!([]), chargebacks)).unwrap();
        assert_eq!((refunded.status, charged_back.status), (expected, expected), "{charged}");
    }
    let nothing = transaction_with(json!({"charged_amount": 0}));
    let verified = verify(host_with(nothing, json!([]), json!([]))).unwrap();
    assert_eq!(verified.status, Success);
}

#[test]
fn a_reversal_keeps_the_payment_and_names_the_cause() {
    let success = verify(host_with(transaction(), json!([]), json!([]))).unwrap();
    for (refunds, chargebacks, message) in [
        (json!([refund(60, "completed")]), json!([]), "Refunded at Flutterwave"),
        (json!([]), json!([chargeback(60, "lost")]), "Charged back at Flutterwave"),
    ] {
        let reversed = verify(host_with(transaction(), refunds, chargebacks)).unwrap();
        let (status, message) = (PaymentStatus::Reversed, message.to_owned());
        assert_eq!(reversed, Payment { status, message, ..success.clone() });
    }
}

#[test]
fn items_of_other_transactions_do_not_count() {
    let other = json!({"tx_id": 5709, "transaction_id": 5709, "tx_ref": "another"});
    let refunds = json!([with(refund(60, "completed-mpgs"), other.clone())]);
    let chargebacks = json!([with(chargeback(60, "lost"), other)]);
    assert_eq!(status(refunds, chargebacks), PaymentStatus::Success);
    for (tx_ref, expected) in
        [("3456787654", PaymentStatus::Reversed), ("another", PaymentStatus::Success)]
    {
        let named = json!({"transaction_id": null, "tx_ref": tx_ref});
        let chargebacks = json!([with(chargeback(60, "lost"), named)]);
        assert_eq!(status(json!([]), chargebacks), expected, "{tx_ref}");
    }
}

#[test]
fn only_successes_query_the_lists_and_a_full_refund_skips_chargebacks() {
    for (value, refunds, requests) in [
        ("pending", json!([]), 1),
        ("failed", json!([]), 1),
        ("something new", json!([]), 1),
        ("successful", json!([refund(60, "completed")]), 2),
        ("successful", json!([]), 3),
    ] {
        let data = transaction_with(json!({"status": value}));
        let host = host_with(data, refunds, json!([])).install();
        Flutterwave::verify("3456787654".into()).unwrap();
        assert_eq!(host.requests().len(), requests, "{value}");
    }
}

#[test]
fn every_page_is_read() {
    let page = |items: Value, number: u64, pages: u64| {
        let info = json!({"total": pages, "current_page": number, "total_pages": pages});
        let mut page = success(items);
        page["meta"] = json!({"page_info": info});
        page
    };
    let second = |list: &str| format!("/{list}?id=782728102&page=2");
    let paged = |pages: u64| {
        host()
            .answer("GET", VERIFY, 200, success(transaction()))
            .answer("GET", REFUNDS, 200, page(json!([refund(20, "completed")]), 1, 2))
            .answer("GET", &second("refunds"), 200, page(json!([]), 2, 2))
            .answer("GET", CHARGEBACKS, 200, page(json!([chargeback(20, "lost")]), 1, pages))
    };
    let rest = page(json!([chargeback(20, "lost")]), 2, 2);
    let host = paged(2).answer("GET", &second("chargebacks"), 200, rest);
    assert_eq!(verify(host).unwrap().status, PaymentStatus::Reversed);
    assert_eq!(verify(paged(1)).unwrap().status, PaymentStatus::Success);
    // A list that disappears halfway is incomplete.
    let gone = refused("Chargebacks not found");
    let host = paged(2).answer("GET", &second("chargebacks"), 404, gone);
    assert_eq!(verify(host).unwrap_err().category, FaultCategory::Unavailable);
    let endless = page(json!([]), 1, 1_000);
    let host = host_of_success().answer("GET", "/refunds", 200, endless);
    assert!(verify(host).unwrap_err().retryable);
}

fn host_of_success() -> FakeHost {
    host().answer("GET", VERIFY, 200, success(transaction()))
}

/// The permissions of a key may exclude a list.
#[test]
fn a_list_that_is_not_shown_counts_as_empty_with_a_warning() {
    for (code, message) in [
        (403, "You are not permitted to use this service"),
        (404, "Cannot find the requested resource"),
    ] {
        for (refunds, chargebacks, expected) in [
            (None, Some(json!([])), PaymentStatus::Success),
            (Some(json!([])), None, PaymentStatus::Success),
            (None, Some(json!([chargeback(60, "lost")])), PaymentStatus::Reversed),
            (Some(json!([refund(20, "completed")])), None, PaymentStatus::Success),
        ] {
            let reply = |items: Option<Value>| {
                items.map_or((code, refused(message)), |items| (200, success(items)))
            };
            let (refunds, chargebacks) = (reply(refunds), reply(chargebacks));
            let host = host_of_success()
                .answer("GET", REFUNDS, refunds.0, refunds.1)
                .answer("GET", CHARGEBACKS, chargebacks.0, chargebacks.1)
                .install();
            let payment = Flutterwave::verify("3456787654".into()).unwrap();
            assert_eq!((payment.status, host.logs().len()), (expected, 1), "{code}");
            assert!(host.logs().iter().all(|(level, _)| *level == Level::Warn));
        }
    }
}

/// Without both lists, it is unknown whether the money is still there.
#[test]
fn without_a_list_the_payment_is_not_verified() {
    type Script = fn(FakeHost, &str) -> FakeHost;
    let scripts: [(Script, FaultCategory); 10] = [
        (|host, list| host.timeout("GET", list), FaultCategory::Unavailable),
        (|host, list| host.cut("GET", list), FaultCategory::Unavailable),
        (|host, list| host.no_connection("GET", list), FaultCategory::Unavailable),
        (|host, list| host.answer("GET", list, 500, json!({})), FaultCategory::Unavailable),
        (|host, list| host.answer("GET", list, 429, json!({})), FaultCategory::Unavailable),
        (
            |host, list| host.answer("GET", list, 400, refused("id must be a number")),
            FaultCategory::Unavailable,
        ),
        (
            |host, list| host.answer("GET", list, 200, success(json!({"odd": true}))),
            FaultCategory::Unavailable,
        ),
        (
            |host, list| host.answer_text("GET", list, 404, "<h1>Not found</h1>"),
            FaultCategory::Unavailable,
        ),
        // The 403 is not from the API: an operator must check the account.
        (|host, list| host.answer("GET", list, 401, json!({})), FaultCategory::Misconfigured),
        (|host, list| host.answer("GET", list, 403, json!({})), FaultCategory::Misconfigured),
    ];
    for (n, (script, category)) in scripts.into_iter().enumerate() {
        let of_refunds = script(host_of_success(), REFUNDS);
        assert_eq!(verify(of_refunds).unwrap_err().category, category, "{n}");
        let refunds = host_of_success().answer("GET", REFUNDS, 200, success(json!([])));
        let of_chargebacks = script(refunds, CHARGEBACKS);
        assert_eq!(verify(of_chargebacks).unwrap_err().category, category, "{n}");
    }
}

#[test]
fn unreadable_items_are_unavailable() {
    let unreadable_refunds = [
        json!({"amount_refunded": null}),
        json!({"amount_refunded": "much"}),
        json!({"status": null}),
        json!({"tx_id": null, "transaction_id": null}),
    ];
    for changes in unreadable_refunds {
        let refunds = json!([with(refund(60, "completed"), changes.clone())]);
        let fault = verify(host_with(transaction(), refunds, json!([]))).unwrap_err();
        assert_eq!(fault.category, FaultCategory::Unavailable, "{changes}");
    }
    let unreadable_chargebacks = [
        json!({"amount": null}),
        json!({"amount": -60}),
        json!({"status": 1}),
        json!({"transaction_id": null, "tx_ref": null}),
    ];
    for changes in unreadable_chargebacks {
        let chargebacks = json!([with(chargeback(60, "lost"), changes.clone())]);
        let fault = verify(host_with(transaction(), json!([]), chargebacks)).unwrap_err();
        assert_eq!(fault.category, FaultCategory::Unavailable, "{changes}");
    }
    // Without its id, the lists of a transaction cannot be read.
    let nameless = transaction_with(json!({"id": null}));
    assert!(verify(host_with(nameless, json!([]), json!([]))).unwrap_err().retryable);
}

#[test]
fn an_unknown_chargeback_status_does_not_count_and_is_logged() {
    let chargebacks = json!([chargeback(60, "something new")]);
    let host = host_with(transaction(), json!([]), chargebacks).install();
    let payment = Flutterwave::verify("3456787654".into()).unwrap();
    assert_eq!((payment.status, host.logs().len()), (PaymentStatus::Success, 1));
}
