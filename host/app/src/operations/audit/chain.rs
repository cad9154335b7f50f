//! The hash chain of an audit log, which reveals changed, missing and reordered entries.
//!
//! Each owner (a company or the service) has its own chain. The hash of an entry covers its fields,
//! its number and the hash of the entry before it, so that a note of the last number and hash, kept
//! elsewhere, protects the whole log.

use serde::{Deserialize, Serialize};
use serde_json::{Number, Value, json};
use sha2::{Digest, Sha256};

use super::AuditEntry;
use crate::state::storage::{FromRow, JsonSchema};

/// The end of a chain.
#[derive(Clone, Debug, Default, PartialEq, Eq, FromRow, Serialize, Deserialize, JsonSchema)]
pub struct ChainEnd {
    /// Number of the last entry, counted from 1; 0: the chain is empty.
    pub number: i64,
    /// Hash of the last entry: SHA-256 in hexadecimal.
    pub hash: String,
}

/// Returns the hash of an entry after the one with the hash `previous`. `owner` is the id of the
/// company, or empty for the service.
#[must_use]
pub fn hash(previous: &str, owner: &str, entry: &AuditEntry) -> String {
    let content = json!([
        previous,
        owner,
        entry.number,
        entry.id,
        entry.actor,
        entry.actor_id,
        entry.credential,
        entry.address,
        entry.request_id,
        entry.action,
        canonical(&entry.detail),
        entry.created_at.0,
    ]);
    hex::encode(Sha256::digest(content.to_string()))
}

/// Checks the entries that follow `end` in a chain. Returns the new end; `Err` describes the first
/// invalid entry.
pub fn verify<'e>(
    owner: &str,
    mut end: ChainEnd,
    entries: impl IntoIterator<Item = &'e AuditEntry>,
) -> Result<ChainEnd, String> {
    for entry in entries {
        let number = end.number + 1;
        match entry.number {
            Some(found) if found == number => {}
            Some(found) => return Err(format!("entry {number} is missing: entry {found} follows")),
            None => return Err(format!("entry {number} is missing: {} has no number", entry.id)),
        }
        let expected = hash(&end.hash, owner, entry);
        if entry.hash.as_deref() != Some(&*expected) {
            return Err(format!("entry {number} was changed: {} has another hash", entry.id));
        }
        end = ChainEnd { number, hash: expected };
    }
    Ok(end)
}

/// Returns the canonical form for hashing, because databases store JSON differently: keys sorted,
/// one notation for each number.
pub fn canonical(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.iter().map(|(key, v)| (key, canonical(v))).collect();
            fields.sort_by_key(|(key, _)| *key);
            json!(["object", fields])
        }
        Value::Array(items) => json!(["array", items.iter().map(canonical).collect::<Vec<_>>()]),
        Value::Number(number) => canonical_number(number),
        other => other.clone(),
    }
}

/// Returns one notation for equal numbers: PostgreSQL may return 2.0 as 2, and 1e16 as its digits.
/// Exact below 2^53; the log contains no larger numbers.
fn canonical_number(number: &Number) -> Value {
    json!(["number", number.as_f64().map(|float| format!("{float:e}"))])
}

#[cfg(test)]
mod tests {
    use super::*;
    use tollhouse_platform::{clock::Timestamp, store::Json};

    fn entry(number: i64) -> AuditEntry {
        AuditEntry {
            id: format!("id-{number}"),
            number: Some(number),
            actor: "ada".to_owned(),
            actor_id: Some("1".to_owned()),
            credential: None,
            address: Some("127.0.0.1".to_owned()),
            request_id: Some("r".to_owned()),
            action: "company.edit".to_owned(),
            detail: Json(json!({ "b": 1e16, "a": [2.0, { "d": 1, "c": null }] })),
            created_at: Timestamp(1),
            hash: None,
        }
    }

    fn chain(length: i64) -> Vec<AuditEntry> {
        let mut previous = String::new();
        let link = |number| {
            let mut entry = entry(number);
            previous = hash(&previous, "acme", &entry);
            entry.hash = Some(previous.clone());
            entry
        };
        (1..=length).map(link).collect()
    }

    #[test]
    fn a_chain_reveals_changed_missing_reordered_and_foreign_entries() {
        let entries = chain(4);
        let check = |owner, entries: &[AuditEntry]| verify(owner, ChainEnd::default(), entries);
        let end = check("acme", &entries).unwrap();
        assert_eq!((end.number, Some(&end.hash)), (4, entries[3].hash.as_ref()));
        let first_half = check("acme", &entries[..2]).unwrap();
        assert_eq!(verify("acme", first_half, &entries[2..]), Ok(end));
        check("beta", &entries).unwrap_err();

        type Change = fn(&mut Vec<AuditEntry>);
        let changes: [Change; 9] = [
            |all| all[1].actor = "eve".to_owned(),
            |all| all[1].detail = Json(json!({})),
            |all| all[1].created_at = Timestamp(2),
            |all| all[1].address = None,
            |all| all[1].hash = None,
            |all| all[1].number = None,
            |all| drop(all.remove(1)),
            |all| drop(all.remove(0)),
            |all| all.swap(1, 2),
        ];
        for (n, change) in changes.into_iter().enumerate() {
            let mut changed = entries.clone();
            change(&mut changed);
            assert!(check("acme", &changed).is_err(), "change {n}");
        }
    }

    #[test]
    fn the_hash_ignores_how_a_database_writes_json() {
        let of = |detail: &str| {
            let detail = Json(serde_json::from_str(detail).unwrap());
            hash("", "acme", &AuditEntry { detail, ..entry(1) })
        };
        assert_eq!(of(r#"{"b":1e16,"a":2.0}"#), of(r#"{"a": 2, "b": 10000000000000000}"#));
        assert_ne!(of(r#"{"a":2}"#), of(r#"{"a":2.5}"#));
        assert_ne!(of(r#"{"a":"2"}"#), of(r#"{"a":2}"#));
        assert_ne!(of(r#"{"a":[1,2]}"#), of(r#"{"a":[2,1]}"#));
        assert_ne!(of(r#"{"a":1}"#), of(r#"{"a":["number","1e0"]}"#));
        assert_ne!(of(r#"{"a":{"b":"c"}}"#), of(r#"{"a":[["b","c"]]}"#));
    }
}
