//! Normalization of card details, whose notation differs between providers.

use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::loose;
use crate::payments::Instrument;

/// Returns the expiry month as two digits: "1" becomes "01".
pub fn month(value: &Value) -> String {
    let month = loose::text(value);
    if month.len() == 1 { format!("0{month}") } else { month }
}

/// Returns the expiry year as four digits: "30" becomes "2030".
pub fn year(value: &Value) -> String {
    let year = loose::text(value);
    if year.len() == 2 { format!("20{year}") } else { year }
}

/// Returns the brand in lower case, without qualifiers: "VISA " and "Visa DEBIT" become "visa".
pub fn brand(value: &Value) -> String {
    loose::text(value).split_whitespace().next().unwrap_or_default().to_lowercase()
}

/// Derives a card signature for providers that return none: a digest of the known card details.
///
/// Two cards of one bank can have the same signature, so it identifies a card only among those of
/// one customer. Returns "" if the BIN, the last four digits or the expiry date is missing: such
/// cards never count as the same card.
pub fn signature(provider: &str, card: &Instrument) -> String {
    let Instrument { last4, exp_month, exp_year, brand, .. } = card;
    let bin = card.bin.get(..6).unwrap_or_default();
    if bin.is_empty() || [last4, exp_month, exp_year].iter().any(|part| part.is_empty()) {
        return String::new();
    }
    let brand = brand.to_lowercase();
    let known = format!("v1|{provider}|{bin}|{last4}|{exp_month}|{exp_year}|{brand}");
    hex::encode(Sha256::digest(known))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn months_years_and_brands_are_normalized() {
        for (value, written) in [(json!(1), "01"), (json!("1"), "01"), (json!("12"), "12")] {
            assert_eq!(month(&value), written);
        }
        for (value, written) in [(json!("30"), "2030"), (json!(2030), "2030"), (json!(null), "")] {
            assert_eq!(year(&value), written);
        }
        for (value, written) in [("VISA ", "visa"), (" Mastercard DEBIT", "mastercard"), ("", "")] {
            assert_eq!(brand(&json!(value)), written);
        }
    }

    fn card() -> Instrument {
        Instrument {
            kind: "card".into(),
            token: "t".into(),
            reusable: true,
            signature: String::new(),
            email: "ada@example.com".into(),
            bin: "539983".into(),
            last4: "7238".into(),
            exp_month: "12".into(),
            exp_year: "2024".into(),
            brand: "mastercard".into(),
            bank: String::new(),
            country: String::new(),
            holder: String::new(),
        }
    }

    #[test]
    fn a_signature_depends_on_the_card_and_not_on_its_token() {
        // SHA-256 of "v1|acme|539983|7238|12|2024|mastercard".
        let known = signature("acme", &card());
        assert_eq!(known, "eb70e50a5eebe9052caf6190304a0474dbe8944d12cf3971c97b15dbcab30abc");
        let same = [
            Instrument { token: "another".into(), ..card() },
            Instrument { brand: "MASTERCARD".into(), ..card() },
            Instrument { bin: "53998300".into(), ..card() },
        ];
        assert!(same.iter().all(|card| signature("acme", card) == known));
        let others = [
            Instrument { bin: "539984".into(), ..card() },
            Instrument { last4: "7239".into(), ..card() },
            Instrument { exp_month: "11".into(), ..card() },
            Instrument { exp_year: "2025".into(), ..card() },
            Instrument { brand: "visa".into(), ..card() },
        ];
        assert!(others.iter().all(|card| signature("acme", card) != known));
        assert_ne!(signature("other", &card()), known);
    }

    #[test]
    fn incomplete_card_details_have_no_signature() {
        for card in [
            Instrument { bin: "5399".into(), ..card() },
            Instrument { last4: String::new(), ..card() },
            Instrument { exp_month: String::new(), ..card() },
            Instrument { exp_year: String::new(), ..card() },
        ] {
            assert_eq!(signature("acme", &card), "");
        }
    }
}
