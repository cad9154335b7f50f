use serde_json::{Value, json};
use tollhouse_plugin::payments::Instrument;
use tollhouse_plugin::verification::Guest;

use super::{QUERY, host, success, transaction};
use crate::Monnify;

fn card_with(changes: Value) -> Option<Instrument> {
    let mut data = transaction();
    for (name, value) in changes.as_object().unwrap() {
        data["cardDetails"][name] = value.clone();
    }
    let _host = host().answer("GET", QUERY, 200, success(data)).install();
    Monnify::verify("pay-1".into()).unwrap().instrument
}

#[test]
fn the_card_is_read() {
    let card = card_with(json!({})).unwrap();
    assert_eq!((card.kind.as_str(), card.reusable), ("card", true));
    assert_eq!((card.token.as_str(), card.email.as_str()), ("MNFY_8C1F7E2A", "demo@test.com"));
    assert_eq!((card.bin.as_str(), card.last4.as_str()), ("411111", "1111"));
    assert_eq!((card.exp_month.as_str(), card.exp_year.as_str()), ("09", "2022"));
    assert_eq!((card.bank.as_str(), card.country.as_str()), ("GTBank", "NG"));
    assert_eq!((card.brand.as_str(), card.holder.as_str()), ("visa", ""));
    // SHA-256 of "v1|provider_c|411111|1111|09|2022|visa".
    assert_eq!(card.signature, "10f7697da1babb28a711382774e6472e006e61d955c67115ca3c78d162f86b9a");
}

/// Tokens are not enabled for every account.
#[test]
fn without_a_token_there_is_no_instrument() {
    for token in [json!(null), json!("")] {
        assert_eq!(card_with(json!({"cardToken": token})), None);
    }
}

#[test]
fn the_reusable_flag_of_a_card_is_read() {
    for (value, reusable) in
        [(json!(true), true), (json!("true"), true), (json!(false), false), (json!(null), false)]
    {
        assert_eq!(card_with(json!({"reusable": value})).unwrap().reusable, reusable, "{value}");
    }
}

#[test]
fn a_new_token_of_a_card_keeps_its_signature() {
    let signature = |changes: Value| card_with(changes).unwrap().signature;
    let known = signature(json!({}));
    let same =
        json!({"cardToken": "MNFY_OTHER", "bin": "41111122", "expMonth": "09", "expYear": 2022});
    assert_eq!(signature(same), known);
    assert_ne!(signature(json!({"expYear": "23"})), known);
    assert_eq!(signature(json!({"last4": null})), "");
}
