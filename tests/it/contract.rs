//! Checks the responses and events in all tests against the OpenAPI documents.

use std::{collections::BTreeMap, sync::LazyLock};

use jsonschema::Validator;
use reqwest::Method;
use serde_json::{Value, json};
use tollhouse_app::routes::{INTERNAL_DOCUMENT, PUBLIC_DOCUMENT};

use crate::app::Reply;

/// An operation of a document, with its response schemas by status. `None`: the body is not JSON.
struct Operation {
    method: String,
    path: &'static str,
    segments: Vec<&'static str>,
    response_schemas: BTreeMap<String, Option<Schema>>,
}

/// A schema that is compiled when it is first used: compiling all of them takes seconds.
type Schema = LazyLock<Validator, Box<dyn FnOnce() -> Validator + Send>>;

static OPERATIONS: LazyLock<Vec<Operation>> = LazyLock::new(|| {
    [&*PUBLIC_DOCUMENT, &*INTERNAL_DOCUMENT].into_iter().flat_map(operations).collect()
});

fn operations(document: &'static Value) -> Vec<Operation> {
    let mut operations = Vec::new();
    for (path, methods) in document["paths"].as_object().expect("paths") {
        for (method, operation) in methods.as_object().expect("methods") {
            let responses = operation["responses"].as_object().expect("responses").iter();
            let response_schemas =
                responses.map(|(status, response)| (status.clone(), schema(document, response)));
            operations.push(Operation {
                method: method.to_uppercase(),
                path,
                segments: path.split('/').collect(),
                response_schemas: response_schemas.collect(),
            });
        }
    }
    operations
}

fn schema(document: &'static Value, response: &'static Value) -> Option<Schema> {
    let response = match response["$ref"].as_str() {
        Some(reference) => document.pointer(&reference[1..]).expect("a response"),
        None => response,
    };
    response["content"]["application/json"].get("schema").map(|schema| rooted(document, schema))
}

/// A schema whose references start at the root of its document.
fn rooted(document: &'static Value, schema: &'static Value) -> Schema {
    LazyLock::new(Box::new(|| {
        let mut schema = schema.clone();
        schema["components"] = document["components"].clone();
        jsonschema::draft202012::new(&schema).expect("a schema")
    }))
}

static EVENTS: LazyLock<BTreeMap<String, Schema>> = LazyLock::new(|| {
    let webhooks = PUBLIC_DOCUMENT["webhooks"].as_object().expect("webhooks");
    let body = |webhook: &'static Value| {
        let content = &webhook["post"]["requestBody"]["content"];
        rooted(&PUBLIC_DOCUMENT, &content["application/json"]["schema"])
    };
    webhooks.iter().map(|(kind, webhook)| (kind.clone(), body(webhook))).collect()
});

/// Checks a received event against its schema.
#[track_caller]
pub fn check_event(kind: &str, body: &str) {
    let validator = EVENTS.get(kind).unwrap_or_else(|| panic!("not in the document: {kind}"));
    let event: Value = serde_json::from_str(body).expect("JSON");
    assert!(
        validator.is_valid(&event) && event["event"] == kind,
        "does not match its schema: {body}"
    );
}

/// Returns the operation that a request matches. If several do, it is the one with the fewest
/// parameters.
fn operation(method: &Method, path: &str) -> Option<&'static Operation> {
    let given: Vec<&str> = path.split('/').collect();
    let leads_to = |wanted: &[&str]| {
        let fits = |(given, wanted): (&&str, &&str)| {
            given == wanted || wanted.starts_with('{') && !given.is_empty()
        };
        // The only route with a catch-all parameter.
        let is_rest = wanted.last() == Some(&"{path}");
        (given.len() == wanted.len() || is_rest && given.len() > wanted.len())
            && given.iter().zip(wanted).all(fits)
    };
    let fit = |o: &&Operation| o.method == *method.as_str() && leads_to(&o.segments);
    OPERATIONS.iter().filter(fit).min_by_key(|operation| operation.path.matches('{').count())
}

#[track_caller]
pub fn check(method: &Method, path: &str, reply: &Reply) {
    // The path exists on the other listener only, or with another method.
    let message = &reply.body["message"];
    if message == "path not found" || reply.status.as_u16() == 405 {
        return;
    }
    let Some(operation) = operation(method, path) else { return };
    let what = format!("{method} {}: {} {}", operation.path, reply.status, reply.body);
    let schema = operation.response_schemas.get(reply.status.as_str());
    let schema = schema.unwrap_or_else(|| panic!("not in the document: {what}"));
    if let Some(validator) = schema {
        let wrong: Vec<String> = validator
            .iter_errors(&reply.body)
            .map(|error| format!("{}: {error}", error.instance_path()))
            .collect();
        assert!(wrong.is_empty(), "does not match its schema: {what}: {wrong:?}");
    }
    assert!(reply.headers.contains_key("x-request-id"), "no request id: {what}");
}

#[test]
fn undocumented_responses_are_detected() {
    let reply = |status: u16, body: Value| Reply {
        status: status.try_into().unwrap(),
        body,
        headers: [("x-request-id".parse().unwrap(), "1".parse().unwrap())].into_iter().collect(),
    };
    let done = json!({ "error": false, "message": "alive" });
    check(&Method::GET, "/health/live", &reply(200, done.clone()));
    for wrong in [
        reply(418, done.clone()),
        reply(500, done.clone()),
        reply(200, json!({ "error": true, "message": "alive" })),
        reply(200, json!({ "error": false })),
        Reply { headers: Default::default(), ..reply(200, done) },
    ] {
        let checked = std::panic::catch_unwind(|| check(&Method::GET, "/health/live", &wrong));
        assert!(checked.is_err(), "{wrong:?}");
    }
}
