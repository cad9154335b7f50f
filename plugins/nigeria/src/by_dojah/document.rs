//! Reads a document: Dojah returns a list of named text fields.

use serde_json::{Value, json};
use tollhouse_plugin::identity::Person;
use tollhouse_plugin::normal;
use tollhouse_plugin::types::Fault;

use super::api;
use crate::identity::IdentityType;

const NUMBERS: [&str; 6] = [
    "documentnumber", "licensenumber", "licencenumber", "licenseno", "licenceno", "passportnumber",
];
const FIRST_NAMES: [&str; 3] = ["givennames", "firstname", "givenname"];
const LAST_NAMES: [&str; 2] = ["surname", "lastname"];

pub(super) struct ParsedDocument {
    pub(super) identifier: String,
    /// For the register that requires a name in addition to the number.
    pub(super) person: Option<Person>,
}

/// Reads a document. If no number can be read, the fault is `invalid` and names the image.
pub(super) fn analyze(
    identity: IdentityType,
    document: &str,
    timeout_ms: u32,
) -> Result<ParsedDocument, Fault> {
    const IMAGE: &str = "imagefrontside";
    let body = json!({"input_type": "base64", IMAGE: document});
    let entity = api::post("document/analysis", &body, IMAGE, timeout_ms)?;
    let texts = entity["text_data"].as_array().map(Vec::as_slice).unwrap_or_default();
    let number = value(texts, &NUMBERS).and_then(|number| identity.normalize_number(&number));
    let person = value(texts, &LAST_NAMES).map(|last_name| Person {
        first_name: value(texts, &FIRST_NAMES).unwrap_or_default(),
        last_name,
        date_of_birth: None,
    });
    Ok(ParsedDocument { identifier: number.ok_or_else(api::unreadable_image)?, person })
}

fn value(texts: &[Value], names: &[&str]) -> Option<String> {
    let named = |text: &&Value| {
        ["field_name", "field_key"].iter().any(|key| names.contains(&&*normalize_name(&text[*key])))
    };
    texts.iter().filter(named).find_map(|text| normal::text(&text["value"]))
}

fn normalize_name(name: &Value) -> String {
    let name = name.as_str().unwrap_or_default();
    name.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
}
