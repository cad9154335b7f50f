//! Reading values whose type on the wire varies: amounts that are numbers or strings, ids beyond 2^53, months that are
//! "12" for cards and 1 for mandates, `metadata` that is an object, a text, zero or nothing.

use serde_json::{Map, Value};
use tollhouse_plugin::types::Fault;

/// A text or a number as text; "" for everything else.
pub(crate) fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.trim().to_owned(),
        Value::Number(number) => number.to_string(),
        _ => String::new(),
    }
}

/// The same of the first of two spellings that says anything.
pub(crate) fn either(first: &Value, second: &Value) -> String {
    let found = text(first);
    if found.is_empty() { text(second) } else { found }
}

/// A whole amount in minor units, as a number or as a text.
pub(crate) fn minor(value: &Value) -> Option<u64> {
    match value {
        Value::Number(number) => number.as_u64().or_else(|| whole(number.as_f64()?)),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    }
}

/// The largest amount that a float still holds exactly.
const EXACT: f64 = 9_007_199_254_740_992.0;

fn whole(number: f64) -> Option<u64> {
    let exact = number.fract() == 0.0 && (0.0..=EXACT).contains(&number);
    exact.then_some(number as u64)
}

/// The caller's metadata, which the contract promises to be an object.
pub(crate) fn metadata(json: &str) -> Result<Map<String, Value>, Fault> {
    if json.trim().is_empty() {
        return Ok(Map::new());
    }
    serde_json::from_str(json).map_err(|_| Fault::invalid("metadata", "no JSON object"))
}

/// An object as JSON text, also when it comes as such a text.
pub(crate) fn object(value: &Value) -> Option<String> {
    match value {
        Value::Object(_) => Some(value.to_string()),
        Value::String(text) => {
            serde_json::from_str::<Map<String, Value>>(text).is_ok().then(|| text.clone())
        }
        _ => None,
    }
}

/// What could charge again, or pay in the customer's place.
const CHARGES_AGAIN: [&str; 3] = ["authorization_code", "access_code", "signature"];

/// The provider's answer as JSON text, without anything that charges again. What the caller put into `metadata` is theirs
/// and stays.
pub(crate) fn raw(data: &Value) -> String {
    let mut data = data.clone();
    strip(&mut data);
    data.to_string()
}

fn strip(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|name, _| !CHARGES_AGAIN.contains(&name.as_str()));
            fields.iter_mut().filter(|(name, _)| *name != "metadata").for_each(|(_, v)| strip(v));
        }
        Value::Array(items) => items.iter_mut().for_each(strip),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn amounts_come_in_many_types() {
        assert_eq!(minor(&json!(20000)), Some(20000));
        assert_eq!(minor(&json!("5000")), Some(5000));
        assert_eq!(minor(&json!(5000.0)), Some(5000));
        for bad in [json!(null), json!(""), json!("50.5"), json!(50.5), json!(-1), json!({})] {
            assert_eq!(minor(&bad), None, "{bad}");
        }
    }

    #[test]
    fn ids_stay_whole() {
        assert_eq!(text(&json!(u64::MAX)), "18446744073709551615");
        assert_eq!(either(&json!(null), &json!(" x ")), "x");
    }

    #[test]
    fn metadata_is_an_object_or_the_callers_mistake() {
        assert!(metadata("").unwrap().is_empty());
        assert_eq!(metadata(r#"{"a":1}"#).unwrap()["a"], 1);
        assert_eq!(metadata("[1]").unwrap_err().field(), Some("metadata"));
    }

    #[test]
    fn nothing_that_charges_again_stays_in_raw() {
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
        assert_eq!(serde_json::from_str::<Value>(&raw(&data)).unwrap(), kept);
    }
}
