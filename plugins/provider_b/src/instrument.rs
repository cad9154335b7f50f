//! Reusable payment instruments: the token of a card, which only verification returns.

use serde::Deserialize;
use serde_json::Value;
use tollhouse_plugin::payments::Instrument;
use tollhouse_plugin::{card, loose};

use crate::transaction::Transaction;

/// Provider name in derived signatures: Flutterwave does not identify the physical card.
const SIGNER: &str = "provider_b";

#[derive(Deserialize, Default)]
#[serde(default)]
struct Card {
    token: Value,
    first_6digits: Value,
    last_4digits: Value,
    issuer: Value,
    country: Value,
    #[serde(rename = "type")]
    brand: Value,
    expiry: Value,
}

/// Returns the card of a transaction; `None` if it was paid in another way, or has no token.
pub(crate) fn from_transaction(transaction: &Transaction) -> Option<Instrument> {
    let found = Card::deserialize(&transaction.card).ok()?;
    let token = loose::text(&found.token);
    if token.is_empty() {
        return None;
    }
    let expiry = loose::text(&found.expiry);
    let (month, year) = expiry.split_once('/').unwrap_or_default();
    let card = Instrument {
        kind: "card".to_owned(),
        token,
        reusable: true,
        signature: String::new(),
        email: loose::text(&transaction.customer["email"]),
        bin: loose::text(&found.first_6digits),
        last4: loose::text(&found.last_4digits),
        exp_month: card::month(&month.into()),
        exp_year: card::year(&year.into()),
        brand: card::brand(&found.brand),
        bank: loose::text(&found.issuer),
        country: country(&loose::text(&found.country)),
        holder: String::new(),
    };
    Some(Instrument { signature: card::signature(SIGNER, &card), ..card })
}

/// Verification returns "NIGERIA NG", other calls "NG": the code is the last two letters.
fn country(value: &str) -> String {
    let code = value.split_whitespace().last().unwrap_or_default();
    let is_code = code.len() == 2 && code.bytes().all(|letter| letter.is_ascii_alphabetic());
    if is_code { code.to_ascii_uppercase() } else { String::new() }
}
