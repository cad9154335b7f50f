//! Masking: removes personal data from a recording such that a replay takes the same path.
//!
//! Each word is replaced by one of the same shape, the same throughout a recording. Recordings
//! differ, because each has a random key, which is discarded. Protocol values (states, codes,
//! amounts, references) are kept, by field name (`field_names.rs`); all other values are masked.

use std::collections::HashSet;

use hmac::{Hmac, KeyInit, Mac};
use serde_json::{Map, Number, Value};
use sha2::Sha256;
use url::form_urlencoded;

use super::field_names::{self, FieldClass};
use crate::REDACTED;
use tollhouse_platform::random::Random;

/// Minimum length of a masked word that is also masked in kept texts, to avoid chance matches.
const MIN_KNOWN_CHARS: usize = 3;
const COMMON_WORDS: &[&str] = &[
    "approved", "bank", "card", "charge", "com", "declined", "false", "live", "payment", "success",
    "successful", "test", "transaction", "transfer", "true",
];
/// Number of digits from which a word counts as a personal number.
const MIN_NUMBER_DIGITS: usize = 5;
/// Minimum length of a reference's word that is kept in other texts.
const MIN_REFERENCE_CHARS: usize = 6;
/// Minimum length of a signature; a shorter value may be a secret.
const MIN_SIGNATURE_CHARS: usize = 32;
/// Maximum depth of JSON, including JSON in strings.
const MAX_DEPTH: usize = 64;

pub struct Mask {
    key: [u8; 32],
    /// Masked words, in lower case.
    masked_words: HashSet<String>,
    /// Words of references, which appear in other texts, too.
    kept_words: HashSet<String>,
}

/// The position of a value.
#[derive(Clone, Copy)]
struct FieldContext<'n> {
    name: &'n str,
    /// Inside personal data.
    private: bool,
    depth: usize,
}

impl Mask {
    pub fn new(random: &Random) -> Mask {
        Mask { key: random.bytes(), masked_words: HashSet::new(), kept_words: HashSet::new() }
    }

    /// Masks each word.
    pub fn text(&mut self, text: &str) -> String {
        let words = words(text).map(str::to_lowercase);
        let is_distinctive =
            |word: &String| word.len() >= MIN_KNOWN_CHARS && !COMMON_WORDS.contains(&&**word);
        self.masked_words.extend(words.filter(is_distinctive));
        self.each_word(text, |_| true)
    }

    /// Marks references of the host or of the provider, which are kept in all texts.
    pub fn keep_references(&mut self, references: &[&str]) {
        let kept = references.iter().flat_map(|reference| words(reference));
        self.kept_words.extend(kept.map(str::to_lowercase));
    }

    /// Masks everything after the origin.
    pub fn url(&mut self, text: &str) -> String {
        let host = text.find("://").map_or(0, |at| at + 3);
        let path = text[host..].find(['/', '?', '#']).map_or(text.len(), |at| host + at);
        let (origin, rest) = text.split_at(path);
        match origin.contains('@') || host == 0 {
            true => self.text(text),
            false => origin.to_owned() + &self.text(rest),
        }
    }

    /// Masks JSON, a form or a text.
    pub fn body(&mut self, body: &str) -> String {
        self.body_in(body, false)
    }

    /// Masks a body that is personal data as a whole, such as a company's metadata.
    pub fn private_body(&mut self, body: &str) -> String {
        self.body_in(body, true)
    }

    fn body_in(&mut self, body: &str, private: bool) -> String {
        let place = FieldContext { name: "", private, depth: 0 };
        if let Some(json) = parse_json(body) {
            return self.json(place, json).to_string();
        }
        let Some(pairs) = parse_form(body) else { return self.text(body) };
        let mut masked = form_urlencoded::Serializer::new(String::new());
        for (name, value) in pairs {
            let value = self.leaf(FieldContext { name: &name, ..place }, &value);
            masked.append_pair(&name, &value);
        }
        masked.finish()
    }

    pub fn headers(&mut self, headers: Vec<(String, String)>) -> Vec<(String, String)> {
        let masked = headers.into_iter().map(|(name, value)| {
            let value = self.header(&name, &value);
            (name, value)
        });
        masked.collect()
    }

    fn header(&mut self, name: &str, value: &str) -> String {
        let is_signature = field_names::is_signature(name)
            && (value.len() >= MIN_SIGNATURE_CHARS || value.contains(REDACTED));
        match is_signature || field_names::is_plain_header(name) {
            true => value.to_owned(),
            false => self.text(value),
        }
    }

    /// Keeps a text, except numbers, e-mail addresses and words that were masked elsewhere.
    pub fn mask_known_words(&self, text: &str) -> String {
        let tokens = text.split_inclusive(char::is_whitespace).map(|token| {
            let is_address = token.contains('@');
            self.each_word(token, |word| {
                is_address || is_number(word) || self.masked_words.contains(&word.to_lowercase())
            })
        });
        tokens.collect()
    }

    fn json(&mut self, place: FieldContext<'_>, value: Value) -> Value {
        let inside = FieldContext { depth: place.depth + 1, ..place };
        match value {
            Value::Null | Value::Bool(_) => value,
            Value::Number(number) => Value::Number(self.number(place, number)),
            Value::String(text) => Value::String(self.leaf(place, &text)),
            Value::Array(all) => all.into_iter().map(|value| self.json(inside, value)).collect(),
            Value::Object(all) => {
                let masked = all.into_iter().map(|(name, value)| {
                    let private = place.private || field_names::is_personal_object(&name);
                    let value = self.json(FieldContext { name: &name, private, ..inside }, value);
                    (if field_names::is_name(&name) { name } else { self.text(&name) }, value)
                });
                Value::Object(masked.collect::<Map<_, _>>())
            }
        }
    }

    fn leaf(&mut self, place: FieldContext<'_>, text: &str) -> String {
        // Providers return metadata as JSON in a string.
        if place.depth < MAX_DEPTH
            && let Some(json) = parse_json(text)
        {
            return self.json(FieldContext { depth: place.depth + 1, ..place }, json).to_string();
        }
        // Protocol values contain no e-mail addresses.
        let is_address = text.contains('@');
        match field_names::classify(place.name, place.private) {
            _ if field_names::is_not_identifying(text) => text.to_owned(),
            FieldClass::Protocol if !is_address => {
                self.learn_reference(place.name, text);
                text.to_owned()
            }
            FieldClass::Amount if field_names::is_amount(text) => text.to_owned(),
            FieldClass::Message => self.mask_known_words(text),
            _ if text.starts_with("https://") || text.starts_with("http://") => self.url(text),
            _ => self.text(text),
        }
    }

    /// Marks words of a reference that are too long to appear elsewhere by chance.
    fn learn_reference(&mut self, name: &str, text: &str) {
        let is_one = |word: &&str| {
            word.len() >= MIN_REFERENCE_CHARS && word.contains(|c: char| c.is_ascii_digit())
        };
        if field_names::is_reference(name) {
            self.kept_words.extend(words(text).filter(is_one).map(str::to_lowercase));
        }
    }

    /// Replaces a number by another one with as many digits.
    fn number(&mut self, place: FieldContext<'_>, number: Number) -> Number {
        let text = number.to_string();
        let class = field_names::classify(place.name, place.private);
        let stays = matches!(class, FieldClass::Protocol | FieldClass::Amount);
        if stays {
            self.learn_reference(place.name, &text);
        }
        if stays || field_names::is_not_identifying(&text) {
            return number;
        }
        let masked: String = self.text(&text).chars().filter(char::is_ascii_digit).collect();
        let digits = masked.trim_start_matches('0');
        format!("{digits:1<width$}", width = masked.len()).parse().unwrap_or_else(|_| 0.into())
    }

    fn each_word(&self, text: &str, is_chosen: impl Fn(&str) -> bool) -> String {
        let is_separator = |c: char| !c.is_alphanumeric();
        let mut masked = String::with_capacity(text.len());
        for part in text.split_inclusive(is_separator) {
            let word = part.trim_end_matches(is_separator);
            match !word.is_empty()
                && is_chosen(word)
                && !self.kept_words.contains(&word.to_lowercase())
            {
                true => self.word(word, &mut masked),
                false => masked.push_str(word),
            }
            masked.push_str(&part[word.len()..]);
        }
        masked
    }

    fn word(&self, word: &str, masked: &mut String) {
        let mac = Hmac::<Sha256>::new_from_slice(&self.key).expect("HMAC takes keys of any length");
        let drawn = mac.chain_update(word.to_lowercase()).finalize().into_bytes();
        for (c, drawn) in word.chars().zip(drawn.iter().cycle()) {
            masked.push(match c {
                '0'..='9' => char::from(b'0' + drawn % 10),
                c if c.is_uppercase() => char::from(b'A' + drawn % 26),
                _ => char::from(b'a' + drawn % 26),
            });
        }
    }
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty())
}

fn is_number(word: &str) -> bool {
    word.chars().filter(char::is_ascii_digit).count() >= MIN_NUMBER_DIGITS
}

/// Parses an object or array. Other texts may be JSON by chance.
fn parse_json(text: &str) -> Option<Value> {
    let is_it = text.trim_start().starts_with(['{', '[']);
    is_it.then(|| serde_json::from_str(text).ok()).flatten()
}

/// Parses a form; `None` if the text may be a token padded with equals signs.
fn parse_form(body: &str) -> Option<Vec<(String, String)>> {
    if body.contains(char::is_whitespace) || !body.split('&').all(|pair| pair.contains('=')) {
        return None;
    }
    let pairs: Vec<_> = form_urlencoded::parse(body.as_bytes()).into_owned().collect();
    let are_names = pairs.iter().all(|(name, _)| field_names::is_name(name));
    let is_padding = matches!(&pairs[..], [(_, value)] if value.is_empty() || value == "=");
    (are_names && !is_padding).then_some(pairs)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn mask() -> Mask {
        Mask::new(&Random::seeded(1))
    }

    /// Masks twice, like a recording: words to mask in a kept text may follow it.
    fn masked(before: &Value) -> Value {
        let (mut mask, text) = (mask(), before.to_string());
        mask.body(&text);
        serde_json::from_str(&mask.body(&text)).unwrap()
    }

    #[track_caller]
    fn assert_gone(after: &Value, gone: &[&str]) {
        let all = after.to_string().to_lowercase();
        for gone in gone {
            assert!(!all.contains(gone), "{gone}: {after}");
        }
    }

    #[test]
    fn a_masked_payment_keeps_protocol_values_but_no_personal_data() {
        let before = json!({"status": true, "data": {
            "status": "success", "gateway_response": "Approved by ADA.obi@mail.example", "amount": 500_000,
            "reference": "r-1", "paid_at": "2026-11-23T10:00:00Z", "channel": "card",
            "currency": "NGN", "id": 409_912_345,
            "access_code": "0peioxfhpn", "message": "Ada pays by 2348012345678", "log": {"attempts": 1, "start_time": 1_795_251_600},
            "authorization": {"authorization_code": "AUTH_8dfhjjdt", "last4": 4081, "reusable": true, "card_type": "visa", "channel": "card"},
            "customer": {"email": "ada.obi@mail.example", "first_name": "Ada", "phone": 2_348_012_345_678_u64, "id": 77_123, "state": "Lagos"},
            "metadata": "{\"borrower\":\"Ada Obi\",\"reason\":\"widow of Musa\",\"msisdn\":2348012345678}",
            "authorization_url": "https://checkout.acme.example/0peioxfhpn", "unknown": "maybe Ada", "dob": 19_901_210,
        }});
        let after = &masked(&before)["data"];
        let before = &before["data"];
        for kept in ["status", "amount", "reference", "paid_at", "channel", "currency", "id", "log"]
        {
            assert_eq!(after[kept], before[kept], "{kept}");
        }
        let authorization = &after["authorization"];
        assert_eq!(
            (&authorization["reusable"], &authorization["channel"]),
            (&json!(true), &json!("card"))
        );
        assert_eq!(authorization["card_type"], "visa");
        assert!(after["gateway_response"].as_str().unwrap().starts_with("Approved by "));
        assert!(after["message"].as_str().unwrap().contains(" pays by "), "{after}");
        assert!(
            after["authorization_url"]
                .as_str()
                .unwrap()
                .starts_with("https://checkout.acme.example/")
        );
        assert_gone(
            after,
            &[
                "ada.", "\"ada", "ada obi", "obi@", "mail.example", "8dfhjjdt", "4081",
                "2348012345678", "0peioxfhpn", "77123", "lagos", "widow", "musa", "19901210",
            ],
        );
        assert_eq!(after["customer"]["phone"].to_string().len(), 13);
    }

    #[test]
    fn amounts_and_states_are_kept_in_all_naming_styles() {
        let before = json!({
            "amountPaid": "403.33", "totalPayable": "403.33", "settlementAmount": 400.5, "fee": "10", "paymentStatus": "PAID",
            "mandateStatus": "ACTIVE", "cost": "KES 0.8000", "expires_in": "3567", "reusable": "1", "responseCode": "00", "statusCode": 101,
            "paidOn": "23/11/2026 10:00:00 AM", "balance": 12.5, "charged_amount": 100, "app_fee": 1.4, "tx_ref": "order-1", "flw_ref": "FLW-1",
        });
        assert_eq!(masked(&before), before);
        assert_ne!(masked(&json!({"amountPaid": "by Ada"})), json!({"amountPaid": "by Ada"}));
    }

    #[test]
    fn personal_fields_with_protocol_suffixes_are_masked() {
        let before = json!({
            "national_id": "A1234", "voter_id": "V9876", "tax_id": "T5555", "wa_id": "2348031234567", "sessionId": "s3ss10n",
            "security_code": "9081", "verification_code": "771209", "accountNumber": "0123456789", "cvv": 123, "first_6digits": 539_983,
            "gateway_response": "{\"accountName\":\"ADA OBI\"}", "exponent": 348e12,
        });
        assert_gone(
            &masked(&before),
            &[
                "a1234", "v9876", "t5555", "2348031234567", "s3ss10n", "9081", "771209",
                "0123456789", ":123", "539983", "ada obi", "348",
            ],
        );
    }

    #[test]
    fn personal_data_quoted_in_a_message_is_masked() {
        let mut mask = mask();
        mask.text("+2348031234567");
        mask.text("Chidinma Okonkwo");
        let masked = mask.body(r#"{"message":"Invalid recipient 2348031234567 (08031234567), CHIDINMA, or c.o@mail.example"}"#);
        for gone in ["2348031234567", "08031234567", "CHIDINMA", "mail"] {
            assert!(!masked.contains(gone), "{masked}");
        }
        assert!(masked.contains("Invalid recipient "), "{masked}");
        mask.body(r#"{"metadata":{"server":"live"}}"#);
        assert_eq!(mask.mask_known_words("delivered live"), "delivered live");
    }

    #[test]
    fn a_word_has_one_mask_per_recording() {
        let (mut one, mut other) = (mask(), Mask::new(&Random::seeded(2)));
        let masked = one.text("Ada Obi");
        assert_eq!(one.text("ADA OBI").to_lowercase(), masked.to_lowercase());
        assert!(masked.starts_with(&one.text("Ada")), "{masked}");
        assert_ne!(other.text("Ada Obi"), masked);
    }

    #[test]
    fn references_are_kept_in_all_texts() {
        let mut mask = mask();
        mask.keep_references(&["order-1"]);
        let before = json!({"data": {"id": 5_974_244_745_u64, "transaction": 5_974_244_745_u64, "note": "Ada [order-1] 5974244745"}});
        mask.body(&before.to_string());
        let after: Value = serde_json::from_str(&mask.body(&before.to_string())).unwrap();
        assert_eq!(after["data"]["transaction"], before["data"]["transaction"]);
        let note = after["data"]["note"].as_str().unwrap();
        assert!(note.ends_with(" [order-1] 5974244745") && !note.contains("Ada"), "{note}");
    }

    #[test]
    fn forms_tokens_and_texts_are_masked() {
        let mut mask = mask();
        let form = mask.body("status=ok&phone=%2B2348012345678&amount=10");
        assert!(form.starts_with("status=ok&phone=%2B") && form.ends_with("&amount=10"), "{form}");
        assert!(!form.contains("2348012345678"));
        for whole in
            ["Dear Ada, your code is 123456.", "c2VjcmV0dG9rZW4xMjM0==", "c2VjcmV0=", "123456789"]
        {
            let masked = mask.body(whole);
            assert_eq!(masked.len(), whole.len());
            assert!(
                !masked.contains("Ada") && !masked.contains("123456") && !masked.contains("c2V"),
                "{masked}"
            );
        }
        assert_eq!(mask.body(""), "");
    }

    #[test]
    fn personal_data_in_field_names_is_masked() {
        let before = json!({"ada@mail.example": {"status": "ok"}, "2348012345678": 1, "Chidinma Okonkwo": 2, "first_6digits": 3});
        let after = masked(&before);
        assert_gone(&after, &["ada@", "2348012345678", "chidinma"]);
        assert!(
            after.to_string().contains(r#"{"status":"ok"}"#)
                && after.get("first_6digits").is_some()
        );
    }

    #[test]
    fn urls_keep_their_origin_and_plain_headers_are_kept() {
        let mut mask = mask();
        for (url, start) in [
            ("https://lender.example:443/paid/ada", "https://lender.example:443/"),
            ("HTTPS://Lender.example/paid?who=ada", "HTTPS://Lender.example/"),
        ] {
            let masked = mask.url(url);
            assert!(masked.starts_with(start) && !masked.contains("ada"), "{masked}");
        }
        assert!(!mask.url("https://ada@lender.example/").contains("ada"));
        let signature = "e39c0e944ff963585cabf6e70c3a18f2";
        assert_eq!(mask.header("x-paystack-signature", signature), signature);
        assert_eq!(mask.header("verif-hash", REDACTED), REDACTED);
        for (name, value) in [
            ("verif-hash", "short"),
            ("location", "/customers/ada@mail.example"),
            ("x-customer-email", "ada@mail.example"),
        ] {
            assert_ne!(mask.header(name, value), value, "{name}");
        }
        assert_eq!(mask.header("Content-Type", "application/json"), "application/json");
    }

    #[test]
    fn json_nested_too_deeply_is_masked_as_text() {
        let mut text = "\"Ada\"".to_owned();
        for _ in 0..200 {
            text =
                if text.len() < 100_000 { json!([text]).to_string() } else { format!("[{text}]") };
        }
        assert!(!mask().body(&text).contains("Ada"));
    }
}
