//! Reads values whose JSON type varies: ids that are numbers or strings and may exceed 2^53, and
//! metadata that is an object, a string, zero or absent.

use serde_json::{Map, Value};

use crate::types::Fault;

/// Returns a string (trimmed) or a number as text, and "" for any other type.
pub fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.trim().to_owned(),
        Value::Number(number) => number.to_string(),
        _ => String::new(),
    }
}

/// Returns the [`text`] of the first value, or of the second one if that is empty.
pub fn either(first: &Value, second: &Value) -> String {
    let found = text(first);
    if found.is_empty() { text(second) } else { found }
}

/// Parses an order's metadata, which is a JSON object by contract. Blank text is an empty object.
pub fn metadata(json: &str) -> Result<Map<String, Value>, Fault> {
    if json.trim().is_empty() {
        return Ok(Map::new());
    }
    serde_json::from_str(json).map_err(|_| Fault::invalid("metadata", "not a JSON object"))
}

/// Returns an object as JSON text, whether it is an object or a string that contains one.
pub fn object(value: &Value) -> Option<String> {
    match value {
        Value::Object(_) => Some(value.to_string()),
        Value::String(text) => {
            serde_json::from_str::<Map<String, Value>>(text).is_ok().then(|| text.clone())
        }
        _ => None,
    }
}

/// Serializes a response for `raw` without the named fields, at any depth. Fields inside `callers`
/// are kept, because the caller provided them.
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
    fn large_ids_keep_all_digits() {
        assert_eq!(text(&json!(u64::MAX)), "18446744073709551615");
        assert_eq!(either(&json!(null), &json!(" x ")), "x");
    }

    #[test]
    fn metadata_that_is_not_an_object_is_invalid() {
        assert!(metadata("").unwrap().is_empty());
        assert_eq!(metadata(r#"{"a":1}"#).unwrap()["a"], 1);
        assert_eq!(metadata("[1]").unwrap_err().field(), Some("metadata"));
    }

    #[test]
    fn named_fields_are_removed_at_any_depth_except_in_caller_data() {
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
