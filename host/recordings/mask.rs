//! What people and providers said in a call, made unrecognisable while it stays of use: a call that is made once more with it
//! takes the same way.
//!
//! Each word becomes another one of the same shape, always the same within a recording and never the same in two: the key is
//! drawn for each and thrown away. What the protocol is made of (states, codes, amounts, references) stays, by the names under
//! which it stands (`names.rs`); whatever stands under another name does not.

use std::collections::HashSet;

use hmac::{Hmac, KeyInit, Mac};
use serde_json::{Map, Number, Value};
use sha2::Sha256;
use url::form_urlencoded;

use super::names::{self, Meaning};
use crate::{plugins::REDACTED, random::Random};

/// Words that are looked for in texts that stay: shorter ones are found by chance, and these are everybody's.
const LEAST_KNOWN: usize = 3;
const COMMON: &[&str] = &[
    "approved",
    "bank",
    "card",
    "charge",
    "com",
    "declined",
    "false",
    "live",
    "payment",
    "success",
    "successful",
    "test",
    "transaction",
    "transfer",
    "true",
];
/// So many digits in a row are somebody's number.
const NUMBER_DIGITS: usize = 5;
/// Of the words of a reference that is looked for elsewhere.
const LEAST_REFERENCE: usize = 6;
/// A signature is longer than a secret that somebody sends along.
const LEAST_SIGNATURE: usize = 32;
/// Of JSON, and of JSON in texts of JSON, together.
const MOST_DEPTH: usize = 64;

pub struct Mask {
    key: [u8; 32],
    /// Words that were made unrecognisable, in lower case.
    known: HashSet<String>,
    /// Words of references, which a provider and a plugin also write into other texts.
    kept: HashSet<String>,
}

/// Where a value stands.
#[derive(Clone, Copy)]
struct Place<'n> {
    name: &'n str,
    /// Within what is about somebody.
    private: bool,
    depth: usize,
}

impl Mask {
    pub fn new(random: &Random) -> Mask {
        Mask { key: random.bytes(), known: HashSet::new(), kept: HashSet::new() }
    }

    /// Word by word.
    pub fn text(&mut self, text: &str) -> String {
        let words = words(text).map(str::to_lowercase);
        let telling = |word: &String| word.len() >= LEAST_KNOWN && !COMMON.contains(&&**word);
        self.known.extend(words.filter(telling));
        self.each_word(text, |_| true)
    }

    /// What the host made, or the provider: it stays wherever it stands.
    pub fn keep(&mut self, reference: &str) {
        self.kept.extend(words(reference).map(str::to_lowercase));
    }

    /// All but the way to the host.
    pub fn url(&mut self, text: &str) -> String {
        let host = text.find("://").map_or(0, |at| at + 3);
        let path = text[host..].find(['/', '?', '#']).map_or(text.len(), |at| host + at);
        let (origin, rest) = text.split_at(path);
        match origin.contains('@') || host == 0 {
            true => self.text(text),
            false => origin.to_owned() + &self.text(rest),
        }
    }

    /// JSON, a form, or a text.
    pub fn body(&mut self, body: &str) -> String {
        self.body_in(body, false)
    }

    /// The same of what is about somebody as a whole: the words of a caller.
    pub fn private_body(&mut self, body: &str) -> String {
        self.body_in(body, true)
    }

    fn body_in(&mut self, body: &str, private: bool) -> String {
        let place = Place { name: "", private, depth: 0 };
        if let Some(json) = parts(body) {
            return self.json(place, json).to_string();
        }
        let Some(pairs) = form(body) else { return self.text(body) };
        let masked = pairs.into_iter().map(|(name, value)| {
            let value = self.leaf(Place { name: &name, ..place }, &value);
            (name, value)
        });
        let masked: Vec<(String, String)> = masked.collect();
        form_urlencoded::Serializer::new(String::new()).extend_pairs(masked).finish()
    }

    pub fn header(&mut self, name: &str, value: &str) -> String {
        let is_signature = names::is_signature(name)
            && (value.len() >= LEAST_SIGNATURE || value.contains(REDACTED));
        match is_signature || names::is_plain_header(name) {
            true => value.to_owned(),
            false => self.text(value),
        }
    }

    /// A text that stays, but for numbers, addresses and what was made unrecognisable elsewhere.
    pub fn within(&self, text: &str) -> String {
        let tokens = text.split_inclusive(char::is_whitespace).map(|token| {
            let is_address = token.contains('@');
            self.each_word(token, |word| {
                is_address || is_number(word) || self.known.contains(&word.to_lowercase())
            })
        });
        tokens.collect()
    }

    fn json(&mut self, place: Place<'_>, value: Value) -> Value {
        let inside = Place { depth: place.depth + 1, ..place };
        match value {
            Value::Null | Value::Bool(_) => value,
            Value::Number(number) => Value::Number(self.number(place, number)),
            Value::String(text) => Value::String(self.leaf(place, &text)),
            Value::Array(all) => all.into_iter().map(|value| self.json(inside, value)).collect(),
            Value::Object(all) => {
                let masked = all.into_iter().map(|(name, value)| {
                    let private = place.private || names::is_about_somebody(&name);
                    let value = self.json(Place { name: &name, private, ..inside }, value);
                    (if names::is_name(&name) { name } else { self.text(&name) }, value)
                });
                Value::Object(masked.collect::<Map<_, _>>())
            }
        }
    }

    fn leaf(&mut self, place: Place<'_>, text: &str) -> String {
        // Metadata comes back as a text of JSON.
        if place.depth < MOST_DEPTH
            && let Some(json) = parts(text)
        {
            return self.json(Place { depth: place.depth + 1, ..place }, json).to_string();
        }
        // No state, code or reference of a protocol is an address.
        let is_address = text.contains('@');
        match names::meaning(place.name, place.private) {
            _ if names::says_nothing(text) => text.to_owned(),
            Meaning::Protocol if !is_address => {
                self.learn_reference(place.name, text);
                text.to_owned()
            }
            Meaning::Amount if names::is_amount(text) => text.to_owned(),
            Meaning::Words => self.within(text),
            _ if text.starts_with("https://") || text.starts_with("http://") => self.url(text),
            _ => self.text(text),
        }
    }

    /// One that could be nothing else.
    fn learn_reference(&mut self, name: &str, text: &str) {
        let is_one = |word: &&str| {
            word.len() >= LEAST_REFERENCE && word.contains(|c: char| c.is_ascii_digit())
        };
        if names::is_reference(name) {
            self.kept.extend(words(text).filter(is_one).map(str::to_lowercase));
        }
    }

    /// Another number with as many digits.
    fn number(&mut self, place: Place<'_>, number: Number) -> Number {
        let text = number.to_string();
        let stays = matches!(
            names::meaning(place.name, place.private),
            Meaning::Protocol | Meaning::Amount
        );
        if stays {
            self.learn_reference(place.name, &text);
        }
        if stays || names::says_nothing(&text) {
            return number;
        }
        let masked: String = self.text(&text).chars().filter(char::is_ascii_digit).collect();
        let digits = masked.trim_start_matches('0');
        format!("{digits:1<width$}", width = masked.len()).parse().unwrap_or_else(|_| 0.into())
    }

    /// The words that are chosen, as others.
    fn each_word(&self, text: &str, is_chosen: impl Fn(&str) -> bool) -> String {
        let mut masked = String::with_capacity(text.len());
        let mut rest = text;
        while !rest.is_empty() {
            let end = rest.find(|c: char| !c.is_alphanumeric()).unwrap_or(rest.len());
            let (word, after) = rest.split_at(end);
            match is_chosen(word) && !self.kept.contains(&word.to_lowercase()) {
                true => self.word(word, &mut masked),
                false => masked.push_str(word),
            }
            let between = after.find(char::is_alphanumeric).unwrap_or(after.len());
            masked.push_str(&after[..between]);
            rest = &after[between..];
        }
        masked
    }

    fn word(&self, word: &str, masked: &mut String) {
        if word.is_empty() {
            return;
        }
        let drawn = self.draw(&word.to_lowercase());
        for (c, drawn) in word.chars().zip(drawn.iter().cycle()) {
            masked.push(match c {
                '0'..='9' => char::from(b'0' + drawn % 10),
                c if c.is_uppercase() => char::from(b'A' + drawn % 26),
                _ => char::from(b'a' + drawn % 26),
            });
        }
    }

    fn draw(&self, word: &str) -> [u8; 32] {
        let mac = Hmac::<Sha256>::new_from_slice(&self.key);
        let mac = mac.expect("HMAC takes keys of any length");
        mac.chain_update(word).finalize().into_bytes().into()
    }
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty())
}

fn is_number(word: &str) -> bool {
    word.chars().filter(char::is_ascii_digit).count() >= NUMBER_DIGITS
}

/// JSON that has parts: other texts may be JSON by chance.
fn parts(text: &str) -> Option<Value> {
    let is_it = text.trim_start().starts_with(['{', '[']);
    is_it.then(|| serde_json::from_str(text).ok()).flatten()
}

/// The pairs of a form; `None` for what may be a token, padded with equals signs.
fn form(body: &str) -> Option<Vec<(String, String)>> {
    if body.contains(char::is_whitespace) || !body.split('&').all(|pair| pair.contains('=')) {
        return None;
    }
    let pairs = form_urlencoded::parse(body.as_bytes()).into_owned();
    let pairs: Vec<(String, String)> = pairs.collect();
    let are_names = pairs.iter().all(|(name, _)| names::is_name(name));
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

    /// As a recording does it: what a text that stays must not say may come after it.
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
    fn what_a_provider_says_of_a_payment_is_of_use_and_of_nobody() {
        let before = json!({"status": true, "data": {
            "status": "success", "gateway_response": "Approved by ADA.obi@mail.example", "amount": 500_000,
            "reference": "r-1", "paid_at": "2026-11-23T10:00:00Z", "channel": "card", "currency": "NGN", "id": 409_912_345,
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
                "ada.",
                "\"ada",
                "ada obi",
                "obi@",
                "mail.example",
                "8dfhjjdt",
                "4081",
                "2348012345678",
                "0peioxfhpn",
                "77123",
                "lagos",
                "widow",
                "musa",
                "19901210",
            ],
        );
        assert_eq!(after["customer"]["phone"].to_string().len(), 13);
    }

    #[test]
    fn amounts_and_states_stay_however_they_are_named() {
        let before = json!({
            "amountPaid": "403.33", "totalPayable": "403.33", "settlementAmount": 400.5, "fee": "10", "paymentStatus": "PAID",
            "mandateStatus": "ACTIVE", "cost": "KES 0.8000", "expires_in": "3567", "reusable": "1", "responseCode": "00", "statusCode": 101,
            "paidOn": "23/11/2026 10:00:00 AM", "balance": 12.5, "charged_amount": 100, "app_fee": 1.4, "tx_ref": "order-1", "flw_ref": "FLW-1",
        });
        assert_eq!(masked(&before), before);
        assert_ne!(masked(&json!({"amountPaid": "by Ada"})), json!({"amountPaid": "by Ada"}));
    }

    #[test]
    fn names_that_end_like_protocol_may_be_somebodys() {
        let before = json!({
            "national_id": "A1234", "voter_id": "V9876", "tax_id": "T5555", "wa_id": "2348031234567", "sessionId": "s3ss10n",
            "security_code": "9081", "verification_code": "771209", "accountNumber": "0123456789", "cvv": 123, "first_6digits": 539_983,
            "gateway_response": "{\"accountName\":\"ADA OBI\"}", "exponent": 348e12,
        });
        assert_gone(
            &masked(&before),
            &[
                "a1234",
                "v9876",
                "t5555",
                "2348031234567",
                "s3ss10n",
                "9081",
                "771209",
                "0123456789",
                ":123",
                "539983",
                "ada obi",
                "348",
            ],
        );
    }

    #[test]
    fn a_provider_that_quotes_a_number_names_nobody() {
        let mut mask = mask();
        mask.text("+2348031234567");
        mask.text("Chidinma Okonkwo");
        let said = mask.body(r#"{"message":"Invalid recipient 2348031234567 (08031234567), CHIDINMA, or c.o@mail.example"}"#);
        for gone in ["2348031234567", "08031234567", "CHIDINMA", "mail"] {
            assert!(!said.contains(gone), "{said}");
        }
        assert!(said.contains("Invalid recipient "), "{said}");
        mask.body(r#"{"metadata":{"server":"live"}}"#);
        assert_eq!(mask.within("delivered live"), "delivered live");
    }

    #[test]
    fn a_word_is_the_same_throughout_a_recording_and_another_in_the_next() {
        let (mut one, mut other) = (mask(), Mask::new(&Random::seeded(2)));
        let masked = one.text("Ada Obi");
        assert_eq!(one.text("ADA OBI").to_lowercase(), masked.to_lowercase());
        assert!(masked.starts_with(&one.text("Ada")), "{masked}");
        assert_ne!(other.text("Ada Obi"), masked);
    }

    #[test]
    fn references_stay_wherever_they_stand() {
        let mut mask = mask();
        mask.keep("order-1");
        let before = json!({"data": {"id": 5_974_244_745_u64, "transaction": 5_974_244_745_u64, "note": "Ada [order-1] 5974244745"}});
        mask.body(&before.to_string());
        let after: Value = serde_json::from_str(&mask.body(&before.to_string())).unwrap();
        assert_eq!(after["data"]["transaction"], before["data"]["transaction"]);
        let note = after["data"]["note"].as_str().unwrap();
        assert!(note.ends_with(" [order-1] 5974244745") && !note.contains("Ada"), "{note}");
    }

    #[test]
    fn forms_tokens_and_texts_are_masked_too() {
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
    fn people_are_no_names_of_fields() {
        let before = json!({"ada@mail.example": {"status": "ok"}, "2348012345678": 1, "Chidinma Okonkwo": 2, "first_6digits": 3});
        let after = masked(&before);
        assert_gone(&after, &["ada@", "2348012345678", "chidinma"]);
        assert!(
            after.to_string().contains(r#"{"status":"ok"}"#)
                && after.get("first_6digits").is_some()
        );
    }

    #[test]
    fn addresses_keep_their_host_and_headers_that_say_nothing_stay() {
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
    fn what_is_nested_without_end_is_masked_as_a_text() {
        let mut text = "\"Ada\"".to_owned();
        for _ in 0..200 {
            text =
                if text.len() < 100_000 { json!([text]).to_string() } else { format!("[{text}]") };
        }
        assert!(!mask().body(&text).contains("Ada"));
    }
}
