use serde_json::{Value, json};
use tollhouse_plugin::payments::Instrument;
use tollhouse_plugin::verification::Guest;

use super::{VERIFY, success, transaction, verifying_host};
use crate::Flutterwave;

fn card_with(changes: Value) -> Option<Instrument> {
    let mut data = transaction();
    for (name, value) in changes.as_object().unwrap() {
        data["card"][name] = value.clone();
    }
    let _host = verifying_host().answer("GET", VERIFY, 200, success(data)).install();
    Flutterwave::verify("3456787654".into()).unwrap().instrument
}

#[test]
fn the_card_is_read() {
    let card = card_with(json!({})).unwrap();
    assert_eq!((card.kind.as_str(), card.reusable), ("card", true));
    assert_eq!(card.token, "flw-t1nf-f9b3bf384cd30d6fca42b6df9d27bd2f-k3n");
    assert_eq!(card.email, "demo@test.com");
    assert_eq!((card.bin.as_str(), card.last4.as_str()), ("539983", "7238"));
    assert_eq!((card.exp_month.as_str(), card.exp_year.as_str()), ("12", "2024"));
    assert_eq!(card.bank, "GUARANTY TRUST BANK Mastercard Naira Debit Card");
    assert_eq!((card.brand.as_str(), card.holder.as_str()), ("mastercard", ""));
    assert_eq!(card.country, "NG");
    // SHA-256 of "v1|provider_b|539983|7238|12|2024|mastercard".
    assert_eq!(card.signature, "b2aa74b3085a96e364510fa7a6490329026bb75977a72d07fe645bb56bb65234");
}

#[test]
fn without_a_token_there_is_no_instrument() {
    for token in [json!(null), json!(""), json!({})] {
        assert_eq!(card_with(json!({"token": token})), None);
    }
}

#[test]
fn the_country_is_the_last_two_letters() {
    for (value, country) in [
        ("NIGERIA NG", "NG"),
        ("NG", "NG"),
        ("ng", "NG"),
        ("UNITED KINGDOM GB ", "GB"),
        ("NIGERIA", ""),
        ("", ""),
    ] {
        assert_eq!(card_with(json!({"country": value})).unwrap().country, country, "{value}");
    }
}

#[test]
fn expiry_dates_are_normalized() {
    for (value, month, year) in
        [("09/32", "09", "2032"), ("9/32", "09", "2032"), ("09/2032", "09", "2032"), ("", "", "")]
    {
        let card = card_with(json!({"expiry": value})).unwrap();
        assert_eq!((card.exp_month.as_str(), card.exp_year.as_str()), (month, year), "{value}");
        assert_eq!(card.signature.is_empty(), year.is_empty());
    }
}

#[test]
fn a_new_token_of_a_card_keeps_its_signature() {
    let signature = |changes: Value| card_with(changes).unwrap().signature;
    let known = signature(json!({}));
    assert_eq!(signature(json!({"token": "flw-t1nf-other-k3n", "country": "NG"})), known);
    assert_ne!(signature(json!({"last_4digits": "7239"})), known);
}
