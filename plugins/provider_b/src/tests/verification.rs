use serde_json::{Value, json};
use tollhouse_plugin::log::Level;
use tollhouse_plugin::payments::{Payment, PaymentStatus};
use tollhouse_plugin::types::{Fault, FaultCategory};
use tollhouse_plugin::verification::Guest;

use super::{
    VERIFY, host, naira, parsed, refused, success, transaction, transaction_with, verifying_host,
};
use crate::Flutterwave;

fn verify_with_response(status: u16, response: Value) -> Result<Payment, Fault> {
    let _host = verifying_host().answer("GET", VERIFY, status, response).install();
    Flutterwave::verify("3456787654".into())
}

fn verify(data: Value) -> Payment {
    verify_with_response(200, success(data)).unwrap()
}

#[test]
fn the_recorded_response_is_read() {
    let payment = verify(transaction());
    assert_eq!(payment.status, PaymentStatus::Success);
    assert_eq!(payment.service_ref, "3456787654");
    assert_eq!(payment.transaction_id, "782728102");
    assert_eq!(payment.amount, naira(6000));
    assert_eq!(payment.requested, Some(naira(6000)));
    assert_eq!(payment.fees_minor, Some(84));
    assert_eq!(payment.channel, "card");
    assert_eq!(payment.paid_at.as_deref(), Some("2022-12-11T07:06:45.000Z"));
    assert_eq!(payment.message, "Approved by Financial Institution");
    assert_eq!(payment.challenge_url, None);
}

#[test]
fn statuses_are_mapped() {
    for (value, status, logs) in [
        ("successful", PaymentStatus::Success, 0),
        ("failed", PaymentStatus::Failed, 0),
        ("cancelled", PaymentStatus::Failed, 0),
        ("pending", PaymentStatus::Pending, 0),
        ("pending auth", PaymentStatus::Pending, 0),
        ("PENDING", PaymentStatus::Pending, 0),
        ("something new", PaymentStatus::Pending, 1),
        ("", PaymentStatus::Pending, 1),
    ] {
        let response = super::success(transaction_with(json!({"status": value})));
        let host = verifying_host().answer("GET", VERIFY, 200, response).install();
        let payment = Flutterwave::verify("3456787654".into()).unwrap();
        assert_eq!((payment.status, host.logs().len()), (status, logs), "{value}");
        assert!(host.logs().iter().all(|(level, _)| *level == Level::Warn));
    }
}

/// The requested amount excludes fees that the customer pays on top.
#[test]
fn fees_borne_by_the_customer_are_not_part_of_the_requested_amount() {
    let payment = verify(transaction_with(json!({"amount": 60, "charged_amount": 60.84})));
    assert_eq!((payment.requested, payment.amount), (Some(naira(6000)), naira(6084)));
    let pending = json!({"status": "pending", "charged_amount": null});
    assert_eq!(verify(transaction_with(pending)).amount, naira(6000));
}

#[test]
fn metadata_excludes_the_fields_that_flutterwave_adds() {
    for (meta, echoed) in [
        (json!({"__CheckoutInitAddress": "https://x.test", "order": 7}), Some(r#"{"order":7}"#)),
        (json!({"__CheckoutInitAddress": "https://x.test"}), None),
        (json!({}), None),
        (json!(null), None),
        (json!([{"metaname": "order", "metavalue": "7"}]), None),
    ] {
        let payment = verify(transaction_with(json!({"meta": meta})));
        assert_eq!(payment.metadata.as_deref(), echoed, "{meta}");
    }
}

#[test]
fn raw_omits_tokens_except_in_caller_data() {
    let meta = json!({"token": "the caller's own"});
    let raw = parsed(&verify(transaction_with(json!({"meta": meta}))).raw);
    assert_eq!(
        (&raw["card"]["token"], &raw["card"]["last_4digits"]),
        (&json!(null), &json!("7238"))
    );
    assert_eq!(raw["meta"]["token"], "the caller's own");
    assert!(!verify(transaction()).raw.contains("flw-t1nf"));
}

#[test]
fn absent_fields_stay_empty() {
    let payment = verify(transaction_with(json!({
        "app_fee": null, "created_at": null, "card": null, "processor_response": null,
        "meta": null, "customer": null, "payment_type": null,
    })));
    assert_eq!((payment.fees_minor, payment.paid_at, payment.instrument), (None, None, None));
    assert_eq!((payment.message.as_str(), payment.channel.as_str()), ("successful", ""));
}

#[test]
fn only_a_success_has_a_payment_time() {
    for status in ["pending", "failed"] {
        assert_eq!(verify(transaction_with(json!({"status": status}))).paid_at, None);
    }
}

#[test]
fn large_ids_keep_all_digits() {
    let payment = verify(transaction_with(json!({"id": u64::MAX})));
    assert_eq!(payment.transaction_id, "18446744073709551615");
}

/// The message depends on whether the customer opened the link.
#[test]
fn an_unknown_reference_is_not_found() {
    for (status, message) in [
        (400, "No transaction was found for this id"),
        (404, "No transaction was found for this id"),
        (404, "Nothing here"),
        (400, "Transaction not found"),
    ] {
        let fault = verify_with_response(status, refused(message)).unwrap_err();
        assert_eq!(fault.category, FaultCategory::NotFound, "{status} {message}");
    }
}

/// A 404 from an intermediary must not count as "never paid".
#[test]
fn a_404_that_is_not_from_the_api_is_unavailable() {
    let _host = host().answer_text("GET", VERIFY, 404, "<h1>Not found</h1>").install();
    let fault = Flutterwave::verify("3456787654".into()).unwrap_err();
    assert_eq!(fault.category, FaultCategory::Unavailable);
}

#[test]
fn references_are_encoded_in_the_query() {
    let path = "/verify_by_reference?tx_ref=a%26id%3D1%2F..";
    let host = verifying_host().answer("GET", path, 200, success(transaction())).install();
    assert!(Flutterwave::verify("a&id=1/..".into()).is_ok());
    assert!(host.requests()[0].url.ends_with(path));
}

#[test]
fn a_payment_without_an_amount_is_unavailable() {
    for data in [json!({"amount": null}), json!({"currency": null})] {
        let fault = verify_with_response(200, success(transaction_with(data))).unwrap_err();
        assert_eq!(fault.category, FaultCategory::Unavailable);
    }
    assert!(verify_with_response(200, success(json!(null))).is_err());
}
