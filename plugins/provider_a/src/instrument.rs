//! Reusable payment instruments of a transaction.

use serde::Deserialize;
use serde_json::Value;
use tollhouse_plugin::card;
use tollhouse_plugin::payments::Instrument;

use crate::loose;
use crate::transaction::Transaction;

#[derive(Deserialize, Default)]
#[serde(default)]
struct Authorization {
    authorization_code: Value,
    bin: Value,
    last4: Value,
    exp_month: Value,
    exp_year: Value,
    channel: Value,
    card_type: Value,
    bank: Value,
    country_code: Value,
    brand: Value,
    reusable: Value,
    signature: Value,
    account_name: Value,
}

/// Returns the card or mandate of a transaction; `None` if it was paid in another way, or is not
/// paid yet.
pub(crate) fn from_transaction(transaction: &Transaction) -> Option<Instrument> {
    let found = Authorization::deserialize(&transaction.authorization).ok()?;
    let token = loose::text(&found.authorization_code);
    if token.is_empty() {
        return None;
    }
    Some(Instrument {
        kind: kind(&found, &transaction.channel)?.to_owned(),
        token,
        reusable: is_reusable(&found),
        signature: loose::text(&found.signature),
        email: loose::text(&transaction.customer["email"]),
        bin: loose::text(&found.bin),
        last4: loose::text(&found.last4),
        exp_month: card::month(&found.exp_month),
        exp_year: loose::text(&found.exp_year),
        brand: brand(&found),
        bank: loose::text(&found.bank),
        country: loose::text(&found.country_code),
        holder: loose::text(&found.account_name),
    })
}

fn is_reusable(found: &Authorization) -> bool {
    matches!(&found.reusable, Value::Bool(true)) || loose::text(&found.reusable) == "1"
}

fn kind(found: &Authorization, paid_by: &Value) -> Option<&'static str> {
    let card_type = card::brand(&found.card_type);
    match loose::either(&found.channel, paid_by).as_str() {
        "direct_debit" => Some("mandate"),
        _ if card_type == "mandate" => Some("mandate"),
        "card" | "apple_pay" => Some("card"),
        "" if !card_type.is_empty() => Some("card"),
        // A reusable bank account is equivalent to a mandate.
        _ if is_reusable(found) => Some("mandate"),
        _ => None,
    }
}

/// Prefers `card_type`, which has the brand with qualifiers and trailing blanks: "visa ",
/// "mastercard DEBIT".
fn brand(found: &Authorization) -> String {
    let brand = card::brand(&found.card_type);
    if brand.is_empty() { card::brand(&found.brand) } else { brand }
}
