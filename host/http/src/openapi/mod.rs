//! Builds the OpenAPI document of a listener from its routes. Arguments and responses of handlers
//! describe themselves, so that the document matches the code.

pub mod docs;

use std::collections::{BTreeMap, BTreeSet};

use schemars::{JsonSchema, Schema, SchemaGenerator, generate::SchemaSettings};
use serde_json::{Map, Value, json};

pub use super::describe::{Describe, Described, Description, description};
use super::{ANY_OPERATOR, Access, Route};
use tollhouse_platform::error::Failure;

/// Named schemas, separate for requests and responses because those of a type may differ.
struct Schemas {
    requests: SchemaGenerator,
    responses: SchemaGenerator,
}

impl Schemas {
    fn new() -> Schemas {
        let settings = SchemaSettings::draft2020_12().with(|settings| {
            settings.meta_schema = None;
            settings.definitions_path = "/components/schemas".into();
        });
        let taken = settings.clone().for_deserialize().with_transform(required_texts_are_not_empty);
        let taken = taken.into_generator();
        Schemas { requests: taken, responses: settings.for_serialize().into_generator() }
    }

    fn named(mut self) -> BTreeMap<String, Value> {
        let mut all: BTreeMap<_, _> = self.requests.take_definitions(true).into_iter().collect();
        for (name, schema) in self.responses.take_definitions(true) {
            let other = all.insert(name.clone(), schema.clone());
            assert!(
                other.is_none_or(|other| other == schema),
                "two types of the interface have the name {name}"
            );
        }
        all
    }
}

/// Requires `minLength` 1, because `""` counts as absent.
fn required_texts_are_not_empty(schema: &mut Schema) {
    let required = schema.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
    for name in required.iter().filter_map(Value::as_str) {
        let field = schema.pointer_mut(&format!("/properties/{name}"));
        if let Some(field) = field.filter(|field| field["type"] == "string") {
            field["minLength"] = json!(1);
        }
    }
}

/// One route while its description is built.
pub struct Operation<'d> {
    pub path: &'static str,
    pub parameters: Vec<Value>,
    body: Option<Value>,
    /// Body of a success, by content type.
    success: Value,
    /// Statuses that follow from access, arguments and response.
    pub failures: BTreeSet<u16>,
    schemas: &'d mut Schemas,
}

impl Operation<'_> {
    pub fn add_body(&mut self, content_type: &str, schema: Value, required: bool) {
        let body = self.body.get_or_insert_with(|| json!({ "content": {}, "required": required }));
        body["content"][content_type] = json!({ "schema": schema });
        self.failures.insert(413);
    }

    pub fn set_response(&mut self, content_type: &str, schema: Value) {
        self.success = json!({ content_type: { "schema": schema } });
    }

    /// Returns the schema of a type in requests: a reference if the type has a name.
    pub fn request_schema<T: JsonSchema>(&mut self) -> Value {
        self.schemas.requests.subschema_for::<T>().to_value()
    }

    /// Like [`Operation::request_schema`], but never a reference.
    pub fn inline_request_schema<T: JsonSchema>(&mut self) -> Value {
        T::json_schema(&mut self.schemas.requests).to_value()
    }

    /// Returns the schema of a type in responses.
    pub fn response_schema<T: JsonSchema>(&mut self) -> Value {
        self.schemas.responses.subschema_for::<T>().to_value()
    }

    fn finish<S>(self, route: &Route<S>, contents: &DocumentContents) -> Value {
        let id = route.id();
        let mut operation = json!({
            "operationId": id,
            "summary": route.summary,
            "tags": [contents.tag(&id)],
            "parameters": self.parameters,
            "responses": responses(route, &self.success, &self.failures),
            "security": match route.access {
                Access::Unauthenticated | Access::Unthrottled => json!([]),
                Access::Company(scope) => json!([{ "company": [scope] }]),
                Access::Operator(ANY_OPERATOR) => json!([{ "operator": [] }]),
                Access::Operator(permission) => json!([{ "operator": [permission] }]),
            },
        });
        if let Some(body) = self.body {
            operation["requestBody"] = body;
        }
        operation
    }
}

/// Returns a parameter in `location`: `path`, `query` or `header`.
pub fn parameter(
    location: &str,
    name: &str,
    required: bool,
    description: impl Into<Value>,
    schema: &Value,
) -> Value {
    let description = description.into();
    json!({
        "name": name,
        "in": location,
        "required": required,
        "description": description,
        "schema": schema,
    })
}

fn reference(section: &str, name: &str) -> Value {
    json!({ "$ref": format!("#/components/{section}/{name}") })
}

fn headers<'n>(names: impl IntoIterator<Item = &'n str>) -> Value {
    names.into_iter().map(|name| (name.to_owned(), reference("headers", name))).collect()
}

/// A tag for operations: the module that handles them, its display name, and its description.
pub type Tag = (&'static str, &'static str, &'static str);

/// The content of a document beside its operations.
pub struct DocumentContents {
    pub title: &'static str,
    /// Markdown. The text on bodies, retries and request ids follows it.
    pub introduction: &'static str,
    /// In display order; one for each module that handles requests.
    pub tags: &'static [Tag],
    pub webhooks: Vec<Webhook>,
}

impl DocumentContents {
    fn tag(&self, operation_id: &str) -> &'static str {
        let known =
            self.tags.iter().find(|(module, ..)| operation_id.split('.').next() == Some(module));
        let (_, shown, _) = known.expect("each module with handlers has a tag");
        shown
    }

    /// Returns the tags in use. The viewer shows webhooks in a section of their own.
    fn tags<S>(&self, routes: &[Route<S>]) -> Vec<Value> {
        let used: BTreeSet<&str> = routes.iter().map(|route| self.tag(&route.id())).collect();
        let used = self.tags.iter().filter(|(_, shown, _)| used.contains(shown));
        used.map(|(_, name, what)| json!({ "name": name, "description": what })).collect()
    }
}

fn responses<S>(route: &Route<S>, success: &Value, failures: &BTreeSet<u16>) -> Value {
    let mut names = vec!["X-Request-Id"];
    names.extend(route.takes_idempotency_key().then_some("Idempotent-Replayed"));
    let mut responses = json!({ "200": {
        "description": "Success",
        "headers": headers(names),
        "content": success,
    }});
    for status in failures {
        let (_, name, ..) = FAILURES
            .iter()
            .find(|(known, ..)| known == status)
            .expect("FAILURES lists each status of a route, its access and its arguments");
        responses[status.to_string()] = reference("responses", name);
    }
    responses
}

/// All failures: status, name, remedy, and additional header.
const FAILURES: [(u16, &str, &str, Option<&str>); 14] = [
    (400, "Invalid", "Correct the request; `message` names the first invalid field.", None),
    (401, "Unauthorized", "Send a valid key.", Some("WWW-Authenticate")),
    (403, "Forbidden", "Not permitted: contact the operator.", None),
    (404, "NotFound", "The path or the record does not exist.", None),
    (408, "TooSlow", "Send the request in time.", None),
    (
        409,
        "Conflict",
        "Check the current state first. With `Retry-After`: another request is doing the same, retry then.",
        Some("Retry-After"),
    ),
    (413, "TooLarge", "Send a smaller body.", None),
    (415, "UnsupportedType", "Send another content type.", None),
    (429, "Throttled", "Wait before the next request.", Some("Retry-After")),
    (431, "HeadersTooLarge", "Send fewer or shorter headers.", None),
    (500, "Internal", "Report it, with the request id.", None),
    (502, "UpstreamFailed", "Retry later: an upstream failed.", None),
    (503, "Unavailable", "Retry later: this host is unavailable.", Some("Retry-After")),
    (504, "UpstreamTimeout", "Retry later: an upstream did not respond in time.", None),
];

const HEADERS: [(&str, &str); 4] = [
    ("X-Request-Id", "The client's id of this request, or a generated one."),
    (
        "Idempotent-Replayed",
        "`true`: this is the stored response of an earlier request with this key.",
    ),
    ("Retry-After", "Time to wait before a retry, in seconds."),
    ("WWW-Authenticate", "`Bearer`."),
];

/// Returns the failures that may occur before the handler.
fn pipeline_failures<S>(route: &Route<S>) -> BTreeSet<u16> {
    let mut failures = BTreeSet::from([431, 500]);
    match route.access {
        Access::Unthrottled => {}
        Access::Unauthenticated => failures.extend([503]),
        Access::Company(_) | Access::Operator(_) => failures.extend([400, 401, 403, 429, 503]),
    }
    if route.method != "get" {
        failures.extend([408, 413]);
    }
    if route.takes_idempotency_key() {
        failures.insert(409);
    }
    failures
}

/// An event sent to companies.
pub struct Webhook {
    pub kind: &'static str,
    pub summary: &'static str,
    pub schema: fn(&mut SchemaGenerator) -> Schema,
}

impl Webhook {
    fn describe(&self, schemas: &mut Schemas) -> Value {
        let text = json!({ "type": "string" });
        let header = |name, description| parameter("header", name, true, description, &text);
        let schema = (self.schema)(&mut schemas.responses);
        json!({ "post": {
            "operationId": self.kind,
            "summary": self.summary,
            "tags": ["events"],
            "parameters": [
                header("webhook-id", "Event id, the same at each attempt."),
                header("webhook-timestamp", "Time of this attempt, in Unix seconds."),
                header("webhook-signature", "Signatures with each valid secret, as defined by Standard Webhooks."),
            ],
            "requestBody": { "content": { "application/json": { "schema": schema } }, "required": true },
            "responses": { "2XX": { "description": "The event was received. Other responses are retried." } },
            "security": [],
        }})
    }
}

/// Returns the document of the listener that has these routes.
#[must_use]
pub fn document<S>(routes: &[Route<S>], contents: &DocumentContents) -> Value {
    let mut schemas = Schemas::new();
    let mut paths: BTreeMap<String, Map<String, Value>> = BTreeMap::new();
    for route in routes {
        let mut operation = Operation {
            path: route.path,
            parameters: Vec::new(),
            body: None,
            success: Value::Null,
            failures: pipeline_failures(route),
            schemas: &mut schemas,
        };
        operation.failures.extend(route.fails);
        (route.describe)(&mut operation);
        if route.takes_idempotency_key() {
            operation.parameters.push(reference("parameters", "Idempotency-Key"));
        }
        paths
            .entry(documented_path(route.path))
            .or_default()
            .insert(route.method.to_owned(), operation.finish(route, contents));
    }
    let webhooks =
        contents.webhooks.iter().map(|webhook| (webhook.kind, webhook.describe(&mut schemas)));
    let webhooks: BTreeMap<&str, Value> = webhooks.collect();
    let mut document = json!({
        "openapi": "3.1.0",
        "info": {
            "title": contents.title,
            "version": env!("CARGO_PKG_VERSION"),
            "description": format!("{}\n{INTRODUCTION}", contents.introduction),
        },
        "servers": [{ "url": "/", "description": "This host" }],
        "tags": contents.tags(routes),
        "paths": paths,
        "components": components(routes, schemas),
    });
    if !webhooks.is_empty() {
        document["webhooks"] = json!(webhooks);
    }
    document
}

/// Returns a path as the document has it: without the marks of wildcards.
fn documented_path(path: &str) -> String {
    path.replace("{*", "{")
}

/// The introduction of both listeners' documents, in Markdown.
const INTRODUCTION: &str = "\
## Bodies

Bodies are JSON. A success response is

    {\"error\": false, \"message\": \"Payment initialized successfully\", \"data\": {…}}

where `data` may be absent. A failure response, whose `message` says what to correct, is

    {\"error\": true, \"message\": \"the amount field must be greater than 0\"}

Amounts are numbers in the major unit with at most 2 decimals, times are RFC 3339 in UTC. In a body, `null` counts as absent, and \
so does `\"\"` for an optional string; unknown fields are ignored. A request that requires a key is rejected with 400 if it has \
an unknown query parameter; the message names it.

## Idempotent requests

A request that changes something may carry an `Idempotency-Key` of your choice, such as a random UUID. A repeated request with \
the same key within 24 hours does not run again: it gets the stored response, with the header `Idempotent-Replayed: true`. \
Another request with that key is rejected with 409, and so is the same request while the first one is in progress. Failures are \
not stored, except those that were billed (an identity that was not found), so the same request can be retried with the same \
key. Retry in this way if there was no response, or one that leaves the outcome open.

## Rate limits

Each key has a rate limit. A request beyond it gets 429 and has no effect, and `Retry-After` is the time to wait in seconds. 503 \
has `Retry-After` too: the host is temporarily unavailable.

## Request ids

Each response has an `X-Request-Id`: the one that you sent (up to 128 visible characters), or a generated one. It is on every \
line that the host logs for that request; include it when you report a problem.
";

fn components<S>(routes: &[Route<S>], mut schemas: Schemas) -> Value {
    let failure = schemas.responses.subschema_for::<Failure>();
    let responses = FAILURES.iter().map(|(_, name, description, more)| {
        let response = json!({
            "description": description,
            "headers": headers(["X-Request-Id"].into_iter().chain(*more)),
            "content": { "application/json": { "schema": failure } },
        });
        (*name, response)
    });
    let header_objects = HEADERS.iter().map(|(name, description)| {
        (*name, json!({ "description": description, "schema": { "type": "string" } }))
    });
    let key = |description: &str| json!({ "type": "http", "scheme": "bearer", "description": description });
    let of_operators = routes.iter().any(|route| matches!(route.access, Access::Operator(_)));
    let of_companies = routes.iter().any(|route| matches!(route.access, Access::Company(_)));
    let keys = [
        (of_companies, "company", key("A company's API key, `sk_live_…` or `sk_test_…`.")),
        (of_operators, "operator", key("The token of an operator, `op_…`.")),
    ];
    let used = keys.into_iter().filter(|(used, ..)| *used);
    json!({
        "headers": header_objects.collect::<BTreeMap<_, _>>(),
        "parameters": { "Idempotency-Key": idempotency_key() },
        "responses": responses.collect::<BTreeMap<_, _>>(),
        "securitySchemes": used.map(|(_, name, key)| (name, key)).collect::<BTreeMap<_, _>>(),
        "schemas": schemas.named(),
    })
}

fn idempotency_key() -> Value {
    const USE: &str = "Chosen by the client and kept for 24 hours: the same request gets the stored response, another one gets 409.";
    let schema =
        json!({ "type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[!-~]+$" });
    parameter("header", "Idempotency-Key", false, USE, &schema)
}
