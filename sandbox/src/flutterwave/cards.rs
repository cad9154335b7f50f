//! Flutterwave's test cards, and BIN lookups.

use axum::extract::Path;
use serde_json::json;

use super::http::{ApiError, ApiKey, ApiResult, Reply};
use crate::checkout::normalize_card_number;

#[derive(Debug)]
pub(super) struct Card {
    pub number: &'static str,
    pub meaning: &'static str,
    pub scheme: &'static str,
    /// The authentication method of the cardholder.
    pub auth_model: &'static str,
    pub expiry: &'static str,
    /// The reason for which every charge fails, regardless of the customer's choice.
    pub decline_reason: Option<&'static str>,
    pub refunds_fail: bool,
}

impl Card {
    pub(super) fn bin(&self) -> &'static str {
        &self.number[..6]
    }

    pub(super) fn last4(&self) -> &'static str {
        &self.number[self.number.len() - 4..]
    }

    pub(super) fn issuer(&self) -> String {
        format!("{} TEST BANK DEBIT", self.scheme)
    }
}

const fn card(
    number: &'static str,
    meaning: &'static str,
    auth_model: &'static str,
    expiry: &'static str,
) -> Card {
    let scheme = match number.as_bytes() {
        [b'4', ..] => "VISA",
        [b'5', b'0', ..] => "VERVE",
        _ => "MASTERCARD",
    };
    Card { number, meaning, scheme, auth_model, expiry, decline_reason: None, refunds_fail: false }
}

const fn declined_card(number: &'static str, meaning: &'static str, reason: &'static str) -> Card {
    Card { decline_reason: Some(reason), ..card(number, meaning, "PIN", "09/31") }
}

/// The success card is first, because it is the default. All cards are Flutterwave's, except the
/// one whose refunds fail: Flutterwave has no such test card.
pub(super) static CARDS: [Card; 10] = [
    card("5531886652142950", "succeeds with PIN and OTP", "PIN", "09/32"),
    card("4187427415564246", "succeeds with 3-D Secure", "VBVSECURECODE", "09/32"),
    card("5438898014560229", "succeeds with 3-D Secure", "VBVSECURECODE", "10/31"),
    card("5061460166976054667", "succeeds without authorization", "NOAUTH", "10/31"),
    card("4556052704172643", "succeeds with an address check", "AVS_VBVSECURECODE", "09/32"),
    card("5377283645077450", "succeeds after a preauthorization", "NOAUTH", "09/31"),
    declined_card("5258585922666506", "has insufficient funds", "Insufficient Funds"),
    declined_card("5590131743294314", "is suspected of fraud", "Suspected Fraud"),
    declined_card("5143010522339965", "is not honoured", "Do Not Honour"),
    Card {
        refunds_fail: true,
        ..card("5531886652142968", "succeeds; refunds fail", "PIN", "09/32")
    },
];

pub(super) fn find(number: &str) -> Option<&'static Card> {
    let digits = normalize_card_number(number);
    CARDS.iter().find(|card| card.number == digits)
}

pub(super) async fn resolve_bin(_: ApiKey, Path(bin): Path<String>) -> ApiResult {
    let card = CARDS.iter().find(|card| card.bin() == bin);
    let card = card.ok_or_else(|| ApiError::invalid("BIN not Found"))?;
    let data = json!({
        "issuing_country": "NIGERIA NG", "bin": card.bin(), "card_type": card.scheme,
        "issuer_info": card.issuer(),
    });
    Ok(Reply::new("completed", data))
}
