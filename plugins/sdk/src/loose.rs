//! Reading values whose type on the wire varies: ids that are numbers or texts and may be beyond 2^53, metadata that is an
//! object, a text, zero or nothing.

use serde_json::{Map, Value};

use crate::types::Fault;

/// A text or a number as text; "" for everything else.
pub fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.trim().to_owned(),
        Value::Number(number) => number.to_string(),
        _ => String::new(),
    }
}

/// The same of the first of two spellings that says anything.
pub fn either(first: &Value, second: &Value) -> String {
    let found = text(first);
    if found.is_empty() { text(second) } else { found }
}

/// An order's metadata, which the contract promises to be an object.
pub fn metadata(json: &str) -> Result<Map<String, Value>, Fault> {
    if json.trim().is_empty() {
        return Ok(Map::new());
    }
    serde_json::from_str(json).map_err(|_| Fault::invalid("metadata", "no JSON object"))
}

/// An object as JSON text, also when it comes as such a text.
pub fn object(value: &Value) -> Option<String> {
    match value {
        Value::Object(_) => Some(value.to_string()),
        Value::String(text) => {
            serde_json::from_str::<Map<String, Value>>(text).is_ok().then(|| text.clone())
        }
        _ => None,
    }
}

/// An answer as JSON text for `raw`, without the fields of these names wherever they stand. What stands under `callers`
/// was put there by the caller, and stays.
pub fn without(names: &[&str], callers: &str, mut data: Value) -> String {
    strip(names, callers, &mut data);
    data.to_string()
}

fn strip(names: &[&str], callers: &str, value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|name, _| !names.contains(&name.as_str()));
            let others = fields.iter_mut().filter(|(name, _)| *name != callers);
            others.for_each(|(_, value)| strip(names, callers, value));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| strip(names, callers, item)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

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
    fn fields_go_wherever_they_stand_but_for_the_callers_own() {
        let data = json!({
            "token": "a",
            "card": {"token": "b", "last4": "4081"},
            "meta": {"token": "the caller's own"},
            "list": [{"token": "c", "id": 1}],
        });
        let kept = json!({
            "card": {"last4": "4081"},
            "meta": {"token": "the caller's own"},
            "list": [{"id": 1}],
        });
        let shown = without(&["token"], "meta", data);
        assert_eq!(serde_json::from_str::<Value>(&shown).unwrap(), kept);
    }
}
