//! The requests to each register, and the published fields. Prembly's envelope is tested in its own
//! crate.

mod details;
mod faults;
mod manifest;
mod requests;

use serde_json::{Value, json};
use tollhouse_plugin::identity::{Entry, Image, Person, Question};
use tollhouse_plugin::testing::FakeHost;
use tollhouse_plugin::types::Fault;
use tollhouse_plugin::{identity_face, identity_lookup};

use crate::Ghana;

const BASE: &str = "https://api.prembly.com/verification/gh";

fn host() -> FakeHost {
    FakeHost::new()
        .manifest(crate::MANIFEST)
        .secret("prembly_key", "sk_prembly")
        .setting("prembly_app_id", "app-p")
}

fn question(identity: &str, identifier: &str) -> Question {
    Question { identity: identity.into(), identifier: identifier.into(), person: None }
}

fn of_ama(question: Question) -> Question {
    let person = Person {
        first_name: "Ama".into(),
        last_name: "Mensah".into(),
        date_of_birth: Some("1990-05-21".into()),
    };
    Question { person: Some(person), ..question }
}

fn selfie() -> Image {
    Image { media_type: "image/jpeg".into(), bytes: vec![0xff, 0xd8, 0xff] }
}

fn found(record: Value) -> Value {
    json!({"status": true, "detail": "Verification Successful", "response_code": "00", "data": record})
}

fn not_found() -> Value {
    json!({"status": true, "detail": "Record not found", "response_code": "01"})
}

fn lookup(question: Question) -> Result<Entry, Fault> {
    <Ghana as identity_lookup::Guest>::lookup(question)
}

fn compare(question: Question) -> Result<identity_face::Compared, Fault> {
    <Ghana as identity_face::Guest>::compare(question, selfie())
}
