//! Reads values whose JSON type varies. Extends the SDK's module with amounts, which are numbers or
//! strings of minor units.

use serde_json::Value;
use tollhouse_plugin::loose;
pub(crate) use tollhouse_plugin::loose::{either, metadata, object, text};

/// Returns a whole amount in minor units from a number or a string.
pub(crate) fn minor(value: &Value) -> Option<u64> {
    match value {
        Value::Number(number) => number.as_u64().or_else(|| exact_integer(number.as_f64()?)),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    }
}

/// The largest amount that a float represents exactly.
const MAX_EXACT_FLOAT: f64 = 9_007_199_254_740_992.0;

fn exact_integer(number: f64) -> Option<u64> {
    let exact = number.fract() == 0.0 && (0.0..=MAX_EXACT_FLOAT).contains(&number);
    exact.then_some(number as u64)
}

/// Fields with credentials to charge the payer again or to act for them.
const CREDENTIAL_FIELDS: [&str; 3] = ["authorization_code", "access_code", "signature"];

/// Returns a response as JSON text without [`CREDENTIAL_FIELDS`]. Fields inside `metadata` are
/// kept, because the caller provided them.
pub(crate) fn redacted_json(data: &Value) -> String {
    loose::without(&CREDENTIAL_FIELDS, "metadata", data.clone())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn amounts_are_read_from_numbers_and_strings() {
        assert_eq!(minor(&json!(20000)), Some(20000));
        assert_eq!(minor(&json!("5000")), Some(5000));
        assert_eq!(minor(&json!(5000.0)), Some(5000));
        for bad in [json!(null), json!(""), json!("50.5"), json!(50.5), json!(-1), json!({})] {
            assert_eq!(minor(&bad), None, "{bad}");
        }
    }

    #[test]
    fn raw_omits_anything_that_could_charge_again() {
        let data = json!({
            "access_code": "a",
            "authorization": {"authorization_code": "AUTH_x", "signature": "SIG_x", "last4": "4081"},
            "metadata": {"signature": "the caller's own"},
            "list": [{"authorization_code": "AUTH_y", "id": 1}],
        });
        let kept = json!({
            "authorization": {"last4": "4081"},
            "metadata": {"signature": "the caller's own"},
            "list": [{"id": 1}],
        });
        assert_eq!(serde_json::from_str::<Value>(&redacted_json(&data)).unwrap(), kept);
    }
}
