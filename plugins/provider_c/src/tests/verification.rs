use serde_json::{Value, json};
use tollhouse_plugin::payments::{Payment, PaymentStatus};
use tollhouse_plugin::types::{Fault, FaultCategory};
use tollhouse_plugin::verification::Guest;

use super::{
    DEBIT, PAGE, QUERY, host, naira, parsed, refused, told, transaction, transaction_with,
};
use crate::Monnify;

fn verify(data: Value) -> Payment {
    let host = host().answer("GET", QUERY, 200, told(data));
    let _host = host.answer("GET", PAGE, 404, refused("99", "Not found")).install();
    Monnify::verify("pay-1".into()).unwrap()
}

#[test]
fn reads_a_payment() {
    let payment = verify(transaction());
    assert_eq!(payment.status, PaymentStatus::Success);
    assert_eq!(payment.service_ref, "pay-1");
    assert_eq!(payment.transaction_id, "MNFY|20220121154928|000001");
    assert_eq!((payment.amount, payment.requested), (naira(40333), Some(naira(40333))));
    assert_eq!(payment.fees_minor, Some(1010));
    assert_eq!((payment.channel.as_str(), payment.message.as_str()), ("card", "PAID"));
    assert_eq!(payment.challenge_url, None);
}

/// Monnify's clocks are those of Lagos, unless they say otherwise.
#[test]
fn moments_are_of_lagos() {
    for (told, read) in [
        ("21/01/2022 03:49:28 PM", Some("2022-01-21T14:49:28Z")),
        ("21/01/2022 12:05:00 AM", Some("2022-01-20T23:05:00Z")),
        ("2022-01-21T15:49:28.000+01:00", Some("2022-01-21T14:49:28.000Z")),
        ("2022-01-21T15:49:28", Some("2022-01-21T14:49:28Z")),
        ("2022-01-21T14:49:28Z", Some("2022-01-21T14:49:28Z")),
        ("", None),
        ("yesterday", None),
    ] {
        let payment = verify(transaction_with(json!({"paidOn": told})));
        assert_eq!(payment.paid_at.as_deref(), read, "{told}");
    }
}

#[test]
fn metadata_is_handed_back() {
    for (told, echoed) in [
        (json!({"order": 7}), Some(r#"{"order":7}"#)),
        (json!("{\"order\":7}"), Some(r#"{"order":7}"#)),
        (json!({}), Some("{}")),
        (json!(null), None),
        (json!(""), None),
    ] {
        let payment = verify(transaction_with(json!({"metaData": told})));
        assert_eq!(payment.metadata.as_deref(), echoed, "{told}");
    }
}

#[test]
fn raw_charges_nothing_and_keeps_what_is_the_callers() {
    let meta = json!({"cardToken": "the caller's own"});
    let raw = parsed(&verify(transaction_with(json!({"metaData": meta}))).raw);
    assert_eq!(raw["cardDetails"]["last4"], "1111");
    assert_eq!(raw["metaData"]["cardToken"], "the caller's own");
    assert!(!verify(transaction()).raw.contains("MNFY_8C1F7E2A"));
}

#[test]
fn what_is_absent_is_not_guessed() {
    let payment = verify(transaction_with(json!({
        "settlementAmount": null, "paidOn": null, "cardDetails": null, "customer": null,
        "metaData": null, "paymentMethod": null, "totalPayable": null, "currency": null,
    })));
    assert_eq!((payment.fees_minor, payment.paid_at, payment.requested), (None, None, None));
    assert_eq!((payment.instrument, payment.metadata), (None, None));
    assert_eq!((payment.channel.as_str(), payment.amount), ("", naira(40333)));
}

/// Verifies a success that says nothing of what is settled; this is what Monnify's own reference leads to.
fn verify_unsettled(status: u16, page: Value) -> Result<Option<u64>, Fault> {
    let data = transaction_with(json!({"settlementAmount": null}));
    let host = host().answer("GET", QUERY, 200, told(data)).answer("GET", PAGE, status, page);
    let host = host.install();
    let payment = Monnify::verify("pay-1".into());
    assert_eq!(host.requests().len(), 2);
    payment.map(|payment| payment.fees_minor)
}

#[test]
fn what_is_settled_is_asked_for_where_it_is_not_told() {
    assert_eq!(verify_unsettled(200, told(transaction())), Ok(Some(1_010)));
    let silent = transaction_with(json!({"settlementAmount": null}));
    assert_eq!(verify_unsettled(200, told(silent)), Ok(None));
    assert_eq!(verify_unsettled(404, refused("99", "Not found")), Ok(None));
    for (status, page) in
        [(500, json!({})), (400, refused("99", "Not today")), (200, told(json!(null)))]
    {
        let fault = verify_unsettled(status, page).unwrap_err();
        assert_eq!(fault.category, FaultCategory::Unavailable, "{status}");
    }
}

/// Before anything is taken nothing is kept.
#[test]
fn what_waits_or_failed_has_no_settlement_to_ask_for() {
    for status in ["PENDING", "FAILED", "REVERSED"] {
        let data = transaction_with(json!({"settlementAmount": null, "paymentStatus": status}));
        let host = host().answer("GET", QUERY, 200, told(data)).install();
        assert_eq!(Monnify::verify("pay-1".into()).unwrap().fees_minor, None);
        assert_eq!(host.requests().len(), 1);
    }
}

#[test]
fn another_currency_is_told_as_such() {
    let payment = verify(transaction_with(json!({"currency": "USD"})));
    assert_eq!(payment.requested.unwrap().currency, "USD");
}

#[test]
fn a_success_without_an_amount_is_not_believed() {
    let data = transaction_with(json!({"amountPaid": null}));
    let _host = host().answer("GET", QUERY, 200, told(data)).install();
    let fault = Monnify::verify("pay-1".into()).unwrap_err();
    assert_eq!(fault.category, FaultCategory::Unavailable);
}

/// Asks for what is neither a transaction nor, by this answer, a debit.
fn unknown(status: u16, answer: Value) -> Fault {
    let host = host()
        .answer("GET", QUERY, 404, refused("99", "There's no transaction matching the reference"))
        .answer("GET", DEBIT, status, answer)
        .install();
    let fault = Monnify::verify("pay-1".into()).unwrap_err();
    assert_eq!(host.requests().len(), 2);
    fault
}

/// A merchant without mandates is refused there, and has no debits.
#[test]
fn what_is_neither_a_transaction_nor_a_debit_is_unknown() {
    for (status, message) in
        [(404, "No debit"), (400, "No transaction found"), (403, "Not enabled")]
    {
        assert_eq!(unknown(status, refused("99", message)).category, FaultCategory::NotFound);
    }
}

/// Nobody may begin again what may be there.
#[test]
fn what_may_be_a_debit_is_not_unknown() {
    for (status, answer) in [
        (500, json!({})),
        (429, json!({})),
        (404, json!([])),
        (200, refused("99", "Something went wrong")),
        (400, refused("99", "Please try again")),
        (400, refused("99", "paymentReference cannot be read now")),
        (422, refused("D04", "Duplicate request")),
    ] {
        assert_eq!(unknown(status, answer).category, FaultCategory::Unavailable, "{status}");
    }
}

/// A 404 of something in between must not pass for "never paid".
#[test]
fn a_stray_404_is_no_answer() {
    let _host = host().answer_text("GET", QUERY, 404, "<h1>Not found</h1>").install();
    let fault = Monnify::verify("pay-1".into()).unwrap_err();
    assert_eq!(fault.category, FaultCategory::Unavailable);
}

#[test]
fn references_cannot_leave_their_place_in_the_query() {
    let path = "/query?paymentReference=MNFY%7C1%26x%3D1";
    let host = host().answer("GET", path, 200, told(transaction())).install();
    assert!(Monnify::verify("MNFY|1&x=1".into()).is_ok());
    assert!(host.requests()[0].url.ends_with(path));
}
