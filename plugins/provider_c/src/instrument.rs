//! Reusable payment instruments: the token of a card, or the debited mandate.

use serde::Deserialize;
use serde_json::Value;
use tollhouse_plugin::payments::Instrument;
use tollhouse_plugin::{card, loose};

use crate::transaction::Transaction;

/// Provider name in derived signatures: Monnify does not identify the physical card.
const SIGNER: &str = "provider_c";

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct CardDetails {
    card_token: Value,
    card_type: Value,
    last4: Value,
    exp_month: Value,
    exp_year: Value,
    bin: Value,
    bank_name: Value,
    reusable: Value,
    country_code: Value,
}

/// Returns the card or mandate of a transaction; `None` if it was paid in another way, or tokens
/// are not enabled for the account.
pub(crate) fn from_transaction(transaction: &Transaction) -> Option<Instrument> {
    let found = CardDetails::deserialize(&transaction.card_details).unwrap_or_default();
    let token = loose::text(&found.card_token);
    let mandate = loose::text(&transaction.mandate_code);
    if token.is_empty() && mandate.is_empty() {
        return None;
    }
    let is_card = !token.is_empty();
    let card = Instrument {
        kind: if is_card { "card" } else { "mandate" }.to_owned(),
        token: if is_card { token } else { mandate },
        reusable: !is_card || is_true(&found.reusable),
        signature: String::new(),
        email: loose::text(&transaction.customer["email"]),
        bin: loose::text(&found.bin),
        last4: loose::text(&found.last4),
        exp_month: card::month(&found.exp_month),
        exp_year: card::year(&found.exp_year),
        brand: card::brand(&found.card_type),
        bank: loose::text(&found.bank_name),
        country: loose::text(&found.country_code),
        holder: String::new(),
    };
    Some(Instrument { signature: card::signature(SIGNER, &card), ..card })
}

fn is_true(value: &Value) -> bool {
    *value == Value::Bool(true) || loose::text(value).eq_ignore_ascii_case("true")
}
