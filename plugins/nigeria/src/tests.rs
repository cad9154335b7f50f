//! Pitfalls of both protocols. Results must not reveal the upstream.

mod documents;
mod faces;
mod failover;
mod firms;
mod licences;
mod manifest;
mod nins;
mod passports;
mod persons;
mod privacy;
mod requests;

use serde_json::{Value, json};
use tollhouse_plugin::identity::{Entry, Person, Question};
use tollhouse_plugin::identity_lookup::Guest;
use tollhouse_plugin::testing::FakeHost;
use tollhouse_plugin::types::Fault;

use crate::Nigeria;

const PREMBLY: &str = "https://api.prembly.com/verification";
const DOJAH: &str = "https://api.dojah.io/api/v1";

fn host() -> FakeHost {
    FakeHost::new()
        .manifest(crate::MANIFEST)
        .secret("prembly_key", "sk_prembly")
        .setting("prembly_app_id", "app-p")
        .secret("dojah_key", "sk_dojah")
        .setting("dojah_app_id", "app-d")
}

fn dojah_first() -> FakeHost {
    host().setting("order", "dojah, Prembly")
}

fn question(identity: &str, identifier: &str) -> Question {
    Question { identity: identity.into(), identifier: identifier.into(), person: None }
}

fn of_ada(question: Question) -> Question {
    let person = Person {
        first_name: "Ada".into(),
        last_name: "Obi".into(),
        date_of_birth: Some("1990-05-21".into()),
    };
    Question { person: Some(person), ..question }
}

fn found(name: &str, record: Value) -> Value {
    let mut response = json!({"status": true, "detail": "Verification Successful", "response_code": "00",
        "verification": {"status": "VERIFIED", "reference": "r-1"}});
    response[name] = record;
    response
}

fn entity(record: Value) -> Value {
    json!({"entity": record})
}

fn by_prembly(identity: &str, path: &str, name: &str, record: Value) -> Result<Entry, Fault> {
    let url = format!("{PREMBLY}/{path}");
    let _host = host().answer("POST", &url, 200, found(name, record)).install();
    Nigeria::lookup(question(identity, "A1"))
}

fn by_dojah(identity: &str, path: &str, record: Value) -> Result<Entry, Fault> {
    let url = format!("{DOJAH}/{path}");
    let _host = dojah_first().answer("GET", &url, 200, entity(record)).install();
    Nigeria::lookup(question(identity, "A1"))
}

fn details(entry: &Entry) -> Value {
    serde_json::from_str(&entry.details).unwrap()
}

/// The record with some fields replaced.
fn changed(record: &Value, changes: Value) -> Value {
    let mut record = record.clone();
    for (name, value) in changes.as_object().into_iter().flatten() {
        record[name] = value.clone();
    }
    record
}

fn contacts(entry: &Entry) -> (Option<&str>, Option<&str>) {
    (entry.email.as_deref(), entry.phone.as_deref())
}
