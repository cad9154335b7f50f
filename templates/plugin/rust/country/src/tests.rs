use serde_json::Value;
use tollhouse_plugin::testing::FakeHost;
use tollhouse_plugin::types::FaultCategory;

use super::*;

const CITIZEN: &str = "/citizens/AB123456";

/// A host with an account at the register, without responses.
fn account() -> FakeHost {
    FakeHost::new().manifest(MANIFEST).secret("api_key", "k3y")
}

fn lookup() -> Result<Entry, Fault> {
    <Plugin as identity_lookup::Guest>::lookup(Question {
        identity: "citizen_card".into(),
        identifier: "AB123456".into(),
        person: None,
    })
}

#[test]
fn the_examples_succeed() {
    let host = FakeHost::new().examples(MANIFEST).install();
    let entry = lookup().unwrap();
    let details: Value = serde_json::from_str(&entry.details).unwrap();
    assert_eq!(details["date_of_birth"], "10/12/1990");
    assert_eq!(entry.phone.as_deref(), Some("+2348012345678"));
    assert_eq!(host.requests()[0].header("authorization"), Some("Bearer example-secret"));
}

#[test]
fn absent_and_invalid_fields_are_null() {
    let citizen = json!({"first_name": "Ada", "last_name": "Obi", "born": "unknown"});
    let _host = account().answer("GET", CITIZEN, 200, citizen).install();
    let details: Value = serde_json::from_str(&lookup().unwrap().details).unwrap();
    assert_eq!((&details["date_of_birth"], &details["phone_number"]), (&Value::Null, &Value::Null));
}

#[test]
fn each_refusal_has_its_category() {
    for (status, code, category) in [
        (401, "", FaultCategory::Misconfigured),
        (404, "no_such_citizen", FaultCategory::NotFound),
        (422, "bad_number", FaultCategory::Invalid),
        (400, "sealed", FaultCategory::Refused),
        (402, "no_credit", FaultCategory::Unavailable),
        (400, "a new word", FaultCategory::Other),
    ] {
        let _host = account().answer("GET", CITIZEN, status, json!({"code": code})).install();
        assert_eq!(lookup().unwrap_err().category, category, "{status} {code}");
    }
}

#[test]
fn failures_of_the_register_are_unavailable() {
    for host in [
        account().timeout("GET", CITIZEN),
        account().no_connection("GET", CITIZEN),
        account().cut("GET", CITIZEN),
        account().answer_text("GET", CITIZEN, 200, "<html>"),
        account().answer_text("GET", CITIZEN, 404, "<html>"),
        account().answer("GET", CITIZEN, 500, json!({})),
    ] {
        let _host = host.install();
        assert_eq!(lookup().unwrap_err().category, FaultCategory::Unavailable);
    }
}
