use serde_json::{Value, json};
use tollhouse_plugin::payments::{Payment, PaymentStatus};
use tollhouse_plugin::types::{Fault, FaultCategory};
use tollhouse_plugin::verification::Guest;

use super::{
    DEBIT, PAGE, QUERY, host, naira, parsed, refused, success, transaction, transaction_with,
};
use crate::Monnify;

fn verify(data: Value) -> Payment {
    let host = host().answer("GET", QUERY, 200, success(data));
    let _host = host.answer("GET", PAGE, 404, refused("99", "Not found")).install();
    Monnify::verify("pay-1".into()).unwrap()
}

#[test]
fn a_payment_is_read() {
    let payment = verify(transaction());
    assert_eq!(payment.status, PaymentStatus::Success);
    assert_eq!(payment.service_ref, "pay-1");
    assert_eq!(payment.transaction_id, "MNFY|20220121154928|000001");
    assert_eq!((payment.amount, payment.requested), (naira(40333), Some(naira(40333))));
    assert_eq!(payment.fees_minor, Some(1010));
    assert_eq!((payment.channel.as_str(), payment.message.as_str()), ("card", "PAID"));
    assert_eq!(payment.challenge_url, None);
}

/// Monnify's timestamps are in Lagos time unless they have an offset.
#[test]
fn timestamps_are_in_lagos_time() {
    for (value, read) in [
        ("21/01/2022 03:49:28 PM", Some("2022-01-21T14:49:28Z")),
        ("21/01/2022 12:05:00 AM", Some("2022-01-20T23:05:00Z")),
        ("2022-01-21T15:49:28.000+01:00", Some("2022-01-21T14:49:28.000Z")),
        ("2022-01-21T15:49:28", Some("2022-01-21T14:49:28Z")),
        ("2022-01-21T14:49:28Z", Some("2022-01-21T14:49:28Z")),
        ("", None),
        ("yesterday", None),
    ] {
        let payment = verify(transaction_with(json!({"paidOn": value})));
        assert_eq!(payment.paid_at.as_deref(), read, "{value}");
    }
}

#[test]
fn metadata_is_returned() {
    for (value, echoed) in [
        (json!({"order": 7}), Some(r#"{"order":7}"#)),
        (json!("{\"order\":7}"), Some(r#"{"order":7}"#)),
        (json!({}), Some("{}")),
        (json!(null), None),
        (json!(""), None),
    ] {
        let payment = verify(transaction_with(json!({"metaData": value})));
        assert_eq!(payment.metadata.as_deref(), echoed, "{value}");
    }
}

#[test]
fn raw_omits_tokens_except_in_caller_data() {
    let meta = json!({"cardToken": "the caller's own"});
    let raw = parsed(&verify(transaction_with(json!({"metaData": meta}))).raw);
    assert_eq!(raw["cardDetails"]["last4"], "1111");
    assert_eq!(raw["metaData"]["cardToken"], "the caller's own");
    assert!(!verify(transaction()).raw.contains("MNFY_8C1F7E2A"));
}

#[test]
fn absent_fields_stay_empty() {
    let payment = verify(transaction_with(json!({
        "settlementAmount": null, "paidOn": null, "cardDetails": null, "customer": null,
        "metaData": null, "paymentMethod": null, "totalPayable": null, "currency": null,
    })));
    assert_eq!((payment.fees_minor, payment.paid_at, payment.requested), (None, None, None));
    assert_eq!((payment.instrument, payment.metadata), (None, None));
    assert_eq!((payment.channel.as_str(), payment.amount), ("", naira(40333)));
}

/// Verifies a success without a settlement amount; the lookup by Monnify's reference gets this
/// response.
fn verify_unsettled(status: u16, page: Value) -> Result<Option<u64>, Fault> {
    let data = transaction_with(json!({"settlementAmount": null}));
    let host = host().answer("GET", QUERY, 200, success(data)).answer("GET", PAGE, status, page);
    let host = host.install();
    let payment = Monnify::verify("pay-1".into());
    assert_eq!(host.requests().len(), 2);
    payment.map(|payment| payment.fees_minor)
}

#[test]
fn a_missing_settlement_is_looked_up() {
    assert_eq!(verify_unsettled(200, success(transaction())), Ok(Some(1_010)));
    let silent = transaction_with(json!({"settlementAmount": null}));
    assert_eq!(verify_unsettled(200, success(silent)), Ok(None));
    assert_eq!(verify_unsettled(404, refused("99", "Not found")), Ok(None));
    for (status, page) in
        [(500, json!({})), (400, refused("99", "Not today")), (200, success(json!(null)))]
    {
        let fault = verify_unsettled(status, page).unwrap_err();
        assert_eq!(fault.category, FaultCategory::Unavailable, "{status}");
    }
}

/// A payment that was not taken has no settlement.
#[test]
fn only_a_success_triggers_a_settlement_lookup() {
    for status in ["PENDING", "FAILED", "REVERSED"] {
        let data = transaction_with(json!({"settlementAmount": null, "paymentStatus": status}));
        let host = host().answer("GET", QUERY, 200, success(data)).install();
        assert_eq!(Monnify::verify("pay-1".into()).unwrap().fees_minor, None);
        assert_eq!(host.requests().len(), 1);
    }
}

#[test]
fn another_currency_is_reported() {
    let payment = verify(transaction_with(json!({"currency": "USD"})));
    assert_eq!(payment.requested.unwrap().currency, "USD");
}

#[test]
fn a_success_without_an_amount_is_unavailable() {
    let data = transaction_with(json!({"amountPaid": null}));
    let _host = host().answer("GET", QUERY, 200, success(data)).install();
    let fault = Monnify::verify("pay-1".into()).unwrap_err();
    assert_eq!(fault.category, FaultCategory::Unavailable);
}

/// Verifies a reference that is not a transaction; the query of a debit gets this response.
fn unknown(status: u16, response: Value) -> Fault {
    let host = host()
        .answer("GET", QUERY, 404, refused("99", "There's no transaction matching the reference"))
        .answer("GET", DEBIT, status, response)
        .install();
    let fault = Monnify::verify("pay-1".into()).unwrap_err();
    assert_eq!(host.requests().len(), 2);
    fault
}

/// Monnify refuses the query to a merchant without mandates, who has no debits.
#[test]
fn a_reference_of_neither_a_transaction_nor_a_debit_is_not_found() {
    for (status, message) in
        [(404, "No debit"), (400, "No transaction found"), (403, "Not enabled")]
    {
        assert_eq!(unknown(status, refused("99", message)).category, FaultCategory::NotFound);
    }
}

/// A payment that may exist must not be started again.
#[test]
fn a_reference_that_may_be_a_debit_is_unavailable() {
    for (status, response) in [
        (500, json!({})),
        (429, json!({})),
        (404, json!([])),
        (200, refused("99", "Something went wrong")),
        (400, refused("99", "Please try again")),
        (400, refused("99", "paymentReference cannot be read now")),
        (422, refused("D04", "Duplicate request")),
    ] {
        assert_eq!(unknown(status, response).category, FaultCategory::Unavailable, "{status}");
    }
}

/// A 404 from an intermediary must not count as "never paid".
#[test]
fn a_404_that_is_not_from_the_api_is_unavailable() {
    let _host = host().answer_text("GET", QUERY, 404, "<h1>Not found</h1>").install();
    let fault = Monnify::verify("pay-1".into()).unwrap_err();
    assert_eq!(fault.category, FaultCategory::Unavailable);
}

#[test]
fn references_are_encoded_in_the_query() {
    let path = "/query?paymentReference=MNFY%7C1%26x%3D1";
    let host = host().answer("GET", path, 200, success(transaction())).install();
    assert!(Monnify::verify("MNFY|1&x=1".into()).is_ok());
    assert!(host.requests()[0].url.ends_with(path));
}
