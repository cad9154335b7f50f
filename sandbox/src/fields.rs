//! Fields of a JSON object from a client, read as leniently as providers do.

use serde_json::{Map, Value};

#[derive(Default)]
pub(crate) struct Fields(Map<String, Value>);

impl From<Map<String, Value>> for Fields {
    fn from(map: Map<String, Value>) -> Fields {
        Fields(map)
    }
}

impl Fields {
    /// Parses a body. An empty body has no fields; `None` if it is not a JSON object.
    pub(crate) fn parse(body: &str) -> Option<Fields> {
        if body.trim().is_empty() {
            return Some(Fields::default());
        }
        serde_json::from_str(body).ok().map(Fields)
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Value> {
        self.0.get(name).filter(|value| !value.is_null())
    }

    /// Returns a non-empty string; numbers count as strings.
    pub(crate) fn text(&self, name: &str) -> Option<String> {
        text(self.get(name)?)
    }

    pub(crate) fn flag(&self, name: &str) -> bool {
        self.get(name).and_then(Value::as_bool).unwrap_or_default()
    }
}

/// Returns a non-empty string; numbers count as strings.
pub(crate) fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.trim().to_owned()).filter(|text| !text.is_empty()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// Returns the address in lower case, if it is valid.
pub(crate) fn email(text: &str) -> Option<String> {
    let email = text.to_lowercase();
    let plain = |part: &str| {
        !part.is_empty() && part.chars().all(|c| c.is_ascii_graphic() && !"@,;<>\"".contains(c))
    };
    let (name, domain) = email.split_once('@')?;
    let valid = plain(name)
        && plain(domain)
        && domain.split('.').all(|part| !part.is_empty())
        && domain.contains('.');
    valid.then_some(email)
}
