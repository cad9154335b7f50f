//! Keys of a manifest that this release does not know, which hosts ignore.

use std::collections::BTreeSet;

use serde_json::Value;

use super::report::{CaseFailure, CaseOutcome, CheckCase};
use tollhouse_plugins::Manifest;

/// Returns a failed case if there are unknown keys. `None` if the manifest cannot be read.
pub fn inspect(wasm: &[u8]) -> Option<CheckCase> {
    let json = Manifest::section(wasm).ok()?;
    serde_json::from_slice::<Value>(json).ok()?;
    let unknown = Manifest::unknown_keys(json);
    let outcome = match unknown.is_empty() {
        true => CaseOutcome::Passed,
        false => CaseOutcome::Failed(CaseFailure {
            expected: "keys of docs/PLUGINS.md only: hosts ignore others".to_owned(),
            found: describe(&unknown),
            request: None,
            answer: None,
        }),
    };
    Some(CheckCase::new("admission", "manifest keys", outcome))
}

fn describe(unknown: &[String]) -> String {
    let mut known = BTreeSet::new();
    collect_keys(&Manifest::schema(), &mut known);
    let describe = |path: &String| {
        let key = path.rsplit('.').next().unwrap_or(path);
        let nearest = known.iter().min_by_key(|known| strsim::levenshtein(key, known));
        let is_near = |known: &&String| strsim::levenshtein(key, known) <= 1 + key.len() / 4;
        match nearest.filter(is_near) {
            Some(known) => format!("{path} (did you mean {known}?)"),
            None => path.clone(),
        }
    };
    unknown.iter().map(describe).collect::<Vec<_>>().join(", ")
}

/// Collects the names of all properties in a schema.
fn collect_keys(schema: &Value, known: &mut BTreeSet<String>) {
    match schema {
        Value::Object(object) => {
            let properties = object.get("properties").and_then(Value::as_object);
            known.extend(properties.into_iter().flatten().map(|(name, _)| name.clone()));
            object.values().for_each(|value| collect_keys(value, known));
        }
        Value::Array(values) => values.iter().for_each(|value| collect_keys(value, known)),
        _ => {}
    }
}
