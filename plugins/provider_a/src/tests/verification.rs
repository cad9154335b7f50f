use serde_json::{Value, json};
use tollhouse_plugin::payments::{Payment, PaymentStatus};
use tollhouse_plugin::types::{Fault, FaultCategory};
use tollhouse_plugin::verification::Guest;

use super::{host, naira, parsed, success, transaction, transaction_with};
use crate::Paystack;

fn verify_with_response(status: u16, response: Value) -> Result<Payment, Fault> {
    let _host = host().answer("GET", "/transaction/verify/re4lyvq3s3", status, response).install();
    Paystack::verify("re4lyvq3s3".into())
}

fn verify(data: Value) -> Payment {
    verify_with_response(200, success(data)).unwrap()
}

#[test]
fn the_recorded_response_is_read() {
    let payment = verify(transaction());
    assert_eq!(payment.status, PaymentStatus::Success);
    assert_eq!(payment.service_ref, "re4lyvq3s3");
    assert_eq!(payment.transaction_id, "4099260516");
    assert_eq!(payment.amount, naira(40333));
    assert_eq!(payment.requested, Some(naira(30050)));
    assert_eq!(payment.fees_minor, Some(10283));
    assert_eq!(payment.channel, "card");
    assert_eq!(payment.paid_at.as_deref(), Some("2024-08-22T09:15:02.000Z"));
    assert_eq!(payment.message, "Successful");
    assert_eq!(payment.challenge_url, None);
}

#[test]
fn the_card_is_read() {
    let card = verify(transaction()).instrument.unwrap();
    assert_eq!((card.kind.as_str(), card.reusable), ("card", true));
    assert_eq!(card.token, "AUTH_uh8bcl3zbn");
    assert_eq!(card.signature, "SIG_yEXu7dLBeqG0kU7g95Ke");
    assert_eq!(card.email, "demo@test.com");
    assert_eq!((card.bin.as_str(), card.last4.as_str()), ("408408", "4081"));
    assert_eq!((card.exp_month.as_str(), card.exp_year.as_str()), ("12", "2030"));
    assert_eq!((card.bank.as_str(), card.country.as_str()), ("TEST BANK", "NG"));
    assert_eq!((card.brand.as_str(), card.holder.as_str()), ("visa", ""));
}

#[test]
fn raw_omits_anything_that_could_charge_again() {
    let raw = parsed(&verify(transaction()).raw);
    assert_eq!(raw["authorization"]["last4"], "4081");
    assert!(raw["authorization"]["authorization_code"].is_null());
    assert!(raw["authorization"]["signature"].is_null());
}

#[test]
fn statuses_are_mapped() {
    for (value, status) in [
        ("success", PaymentStatus::Success),
        ("failed", PaymentStatus::Failed),
        ("reversed", PaymentStatus::Reversed),
        ("abandoned", PaymentStatus::Pending),
        ("ongoing", PaymentStatus::Pending),
        ("pending", PaymentStatus::Pending),
        ("processing", PaymentStatus::Pending),
        ("queued", PaymentStatus::Pending),
        ("something new", PaymentStatus::Pending),
    ] {
        assert_eq!(verify(transaction_with(json!({"status": value}))).status, status, "{value}");
    }
}

#[test]
fn metadata_is_read_in_every_shape() {
    let object = Some(r#"{"a":1}"#.to_owned());
    for (metadata, echoed) in [
        (json!(""), None),
        (json!(0), None),
        (json!(null), None),
        (json!({"a": 1}), object.clone()),
        (json!("{\"a\":1}"), object),
        (json!([1]), None),
    ] {
        let payment = verify(transaction_with(json!({"metadata": metadata})));
        assert_eq!(parsed(&payment.raw)["metadata"], metadata);
        assert_eq!(payment.metadata, echoed);
    }
}

#[test]
fn the_brand_comes_from_the_card_type() {
    for (value, brand) in
        [("visa ", "visa"), ("mastercard DEBIT", "mastercard"), (" Verve", "verve"), ("", "visa")]
    {
        let mut data = transaction();
        data["authorization"]["card_type"] = json!(value);
        assert_eq!(verify(data).instrument.unwrap().brand, brand);
    }
}

#[test]
fn months_have_two_digits() {
    for (value, month) in [(json!("12"), "12"), (json!(1), "01"), (json!("07"), "07")] {
        let mut data = transaction();
        data["authorization"]["exp_month"] = value;
        assert_eq!(verify(data).instrument.unwrap().exp_month, month);
    }
}

#[test]
fn absent_fields_stay_empty() {
    let payment = verify(transaction_with(json!({
        "fees": null, "requested_amount": null, "paid_at": null, "paidAt": null,
        "authorization": {}, "gateway_response": null, "message": "Waiting",
    })));
    assert_eq!((payment.fees_minor, payment.requested, payment.paid_at), (None, None, None));
    assert_eq!(payment.instrument, None);
    assert_eq!(payment.message, "Waiting");
}

#[test]
fn bank_accounts_become_mandates_only_if_reusable() {
    let with = |changes: Value| {
        let mut data = transaction();
        for (name, value) in changes.as_object().unwrap() {
            data["authorization"][name] = value.clone();
        }
        verify(data).instrument.map(|instrument| instrument.kind)
    };
    assert_eq!(
        with(json!({"channel": "direct_debit", "card_type": "mandate"})),
        Some("mandate".into())
    );
    assert_eq!(with(json!({"channel": null, "card_type": "mandate "})), Some("mandate".into()));
    assert_eq!(with(json!({"channel": "bank", "card_type": "", "reusable": false})), None);
    assert_eq!(with(json!({"authorization_code": null})), None);
    assert_eq!(with(json!({"reusable": false})), Some("card".into()));
}

#[test]
fn paid_at_is_read_in_both_spellings_and_only_in_utc() {
    let paid_at = |snake: Value, camel: Value| {
        verify(transaction_with(json!({"paid_at": snake, "paidAt": camel}))).paid_at
    };
    let moment = "2024-08-22T09:15:02.000Z";
    assert_eq!(paid_at(json!(null), json!(moment)).as_deref(), Some(moment));
    assert_eq!(paid_at(json!(moment), json!(null)).as_deref(), Some(moment));
    assert_eq!(paid_at(json!("22 Aug 2024, 09:15:02"), json!(null)), None);
    assert_eq!(paid_at(json!("2024-08-22T09:15:02+01:00"), json!(null)), None);
}

#[test]
fn large_ids_and_amounts_as_strings_are_exact() {
    let payment = verify(transaction_with(json!({"id": u64::MAX, "amount": "40333"})));
    assert_eq!(payment.transaction_id, "18446744073709551615");
    assert_eq!(payment.amount, naira(40333));
}

#[test]
fn a_page_of_a_transaction_that_is_not_paused_is_not_a_challenge() {
    let url = json!({"authorization_url": "https://checkout.paystack.com/3ni8"});
    assert_eq!(verify(transaction_with(url)).challenge_url, None);
}

#[test]
fn an_unknown_reference_is_not_found() {
    let coded = json!({"status": false, "message": "Transaction reference not found",
        "meta": {"nextStep": "..."}, "type": "validation_error", "code": "transaction_not_found"});
    let older = json!({"status": false, "message": "Transaction reference not found"});
    let bare = json!({"status": false, "message": "Nothing here"});
    for (status, response) in [(400, &coded), (404, &coded), (400, &older), (404, &bare)] {
        let fault = verify_with_response(status, response.clone()).unwrap_err();
        assert_eq!(fault.category, FaultCategory::NotFound, "{status} {response}");
    }
}

/// A 404 from an intermediary must not count as "never paid".
#[test]
fn a_404_that_is_not_from_the_api_is_unavailable() {
    let _host = host().answer_text("GET", "/verify/x", 404, "<h1>Not found</h1>").install();
    assert_eq!(Paystack::verify("x".into()).unwrap_err().category, FaultCategory::Unavailable);
}

#[test]
fn references_are_encoded_in_the_path() {
    let host = host().answer("GET", "/verify/a%2F..%2Frefund%3Fx%3D1", 200, success(transaction()));
    let _host = host.install();
    assert!(Paystack::verify("a/../refund?x=1".into()).is_ok());
}

#[test]
fn a_payment_without_an_amount_is_unavailable() {
    for data in [json!({"amount": null}), json!({"amount": 40333.5}), json!({"currency": null})] {
        let fault = verify_with_response(200, success(transaction_with(data))).unwrap_err();
        assert_eq!(fault.category, FaultCategory::Unavailable);
    }
    assert!(verify_with_response(200, success(json!(null))).is_err());
}
