//! Upstream failures.

use bytes::Bytes;
use url::Url;

use self::{FailureMeaning::*, FailureResponse::*};
use crate::prelude::*;

const HTML_PAGE: &str = "<!DOCTYPE html>\n<html><head><title>Error</title></head><body><h1>Something went wrong</h1></body></html>\n";
/// A word that no upstream uses.
const UNKNOWN_WORD: &str = "unheard-of";
/// Personal data of the example customer, which upstreams may put into messages.
const PERSONAL_DATA: &str = "Ada Obi, ada@example.com, +2348012345678";

#[derive(Debug)]
pub struct UpstreamFailure {
    /// Its name in the report.
    pub name: &'static str,
    pub meaning: FailureMeaning,
    response: FailureResponse,
}

/// The meaning of a failure for the plugin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureMeaning {
    /// The upstream is down or slow, or its response is unreadable.
    Outage,
    /// The upstream is down, or the address is wrong.
    WrongAddress,
    /// The account is not authorized.
    AccountRejected,
    /// A response with unknown words.
    UnknownWords,
    /// A response with unknown words and values.
    UnknownValues,
    /// A refusal for an unknown reason.
    Refusal,
}

#[derive(Debug)]
enum FailureResponse {
    NoResponse(fn(String) -> EgressError),
    TooLarge,
    Html(u16),
    Json(u16, &'static str),
    /// The first half of the example response.
    Truncated,
    /// The example response, with all strings replaced by this text, except those of the request. A
    /// status replaces its own.
    Words(Option<u16>, &'static str),
    /// The example response, with all strings, numbers and booleans replaced, except strings of the
    /// request.
    Values,
}

pub static FAILURES: [UpstreamFailure; 18] = [
    failure("no connection", Outage, NoResponse(EgressError::Connect)),
    failure("timeout", Outage, NoResponse(EgressError::Timeout)),
    failure("connection cut after sending", Outage, NoResponse(EgressError::ConnectionLost)),
    failure("200 with a body over the limit", Outage, TooLarge),
    failure("500 with an HTML page", Outage, Html(500)),
    failure("429 with an HTML page", Outage, Html(429)),
    failure("200 with an HTML page", Outage, Html(200)),
    failure("200 with an empty body", Outage, Json(200, "")),
    failure("200 with {}", Outage, Json(200, "{}")),
    failure("200 with truncated JSON", Outage, Truncated),
    failure("404 with an HTML page", WrongAddress, Html(404)),
    failure("401 with {}", AccountRejected, Json(401, "{}")),
    failure("403 with {}", AccountRejected, Json(403, "{}")),
    failure("the example with unknown words", UnknownWords, Words(None, UNKNOWN_WORD)),
    failure("the example with unknown words, numbers and booleans", UnknownValues, Values),
    failure("400 with unknown words", Refusal, Words(Some(400), UNKNOWN_WORD)),
    failure("the example with personal data", UnknownWords, Words(None, PERSONAL_DATA)),
    failure("400 with personal data", Refusal, Words(Some(400), PERSONAL_DATA)),
];

const fn failure(
    name: &'static str,
    meaning: FailureMeaning,
    response: FailureResponse,
) -> UpstreamFailure {
    UpstreamFailure { name, meaning, response }
}

impl UpstreamFailure {
    /// Returns whether the response contains personal data, which must not be repeated.
    pub fn contains_personal_data(&self) -> bool {
        matches!(self.response, Words(_, PERSONAL_DATA))
    }

    /// Returns whether the failure applies to a request. Changing its example requires JSON.
    pub fn applies_to(&self, example: Option<&EgressResponse>) -> bool {
        let needs_example = matches!(self.response, Truncated | Words(..) | Values);
        !needs_example || example.is_some_and(|example| parse_json(example).is_some())
    }

    pub fn respond(
        &self,
        request: &EgressRequest,
        example: Option<&EgressResponse>,
    ) -> Result<EgressResponse, EgressError> {
        let example_json =
            || example.and_then(|example| Some((example.status, parse_json(example)?)));
        let example_json = || example_json().unwrap_or((200, Value::Null));
        let json = |status, body: Bytes| response(status, "application/json", body);
        let is_echoed = |text: &str| is_in(request, text);
        Ok(match self.response {
            NoResponse(error) => {
                let host = Url::parse(&request.url).ok();
                let host = host.and_then(|url| url.host_str().map(str::to_owned));
                return Err(error(host.unwrap_or_default()));
            }
            TooLarge => json(200, vec![b' '; request.max_response_bytes.saturating_add(1)].into()),
            Html(status) => response(status, "text/html", HTML_PAGE),
            Json(status, body) => json(status, body.into()),
            Truncated => {
                let body = example.map(|example| example.body.clone()).unwrap_or_default();
                json(200, body.slice(..body.len() / 2))
            }
            Words(status, word) => {
                let (usual, body) = example_json();
                json(status.unwrap_or(usual), with_words(body, word, &is_echoed).to_string().into())
            }
            Values => {
                let (status, body) = example_json();
                json(status, with_other_values(body, &is_echoed).to_string().into())
            }
        })
    }
}

fn response(status: u16, kind: &str, body: impl Into<Bytes>) -> EgressResponse {
    let headers = vec![("content-type".to_owned(), kind.to_owned())];
    EgressResponse { status, headers, body: body.into() }
}

fn parse_json(response: &EgressResponse) -> Option<Value> {
    let value: Value = serde_json::from_slice(&response.body).ok()?;
    (value.is_object() || value.is_array()).then_some(value)
}

/// Returns whether a request has sent this text, for example its reference. A plugin may compare
/// such a text before it reads the others.
fn is_in(request: &EgressRequest, text: &str) -> bool {
    const MIN_BYTES: usize = 4;
    let body = request.body.as_deref().unwrap_or_default();
    text.len() >= MIN_BYTES
        && (request.url.contains(text) || memchr::memmem::find(body, text.as_bytes()).is_some())
}

/// Replaces each string that is not kept by `word` and a number, so that no two are equal.
fn with_words(mut value: Value, word: &str, is_kept: &dyn Fn(&str) -> bool) -> Value {
    let mut words = 0;
    change_leaves(&mut value, &mut |leaf| {
        if leaf.as_str().is_some_and(|text| !is_kept(text)) {
            words += 1;
            *leaf = format!("{word} {words:03}").into();
        }
    });
    value
}

/// Replaces all values but strings that are kept.
fn with_other_values(mut value: Value, is_kept: &dyn Fn(&str) -> bool) -> Value {
    change_leaves(&mut value, &mut |leaf| match leaf {
        Value::String(text) if is_kept(text) => {}
        Value::String(_) => *leaf = UNKNOWN_WORD.into(),
        Value::Bool(flag) => *flag = !*flag,
        Value::Number(_) => *leaf = 987_654_321.into(),
        _ => {}
    });
    value
}

fn change_leaves(value: &mut Value, change: &mut dyn FnMut(&mut Value)) {
    match value {
        Value::Array(values) => values.iter_mut().for_each(|value| change_leaves(value, change)),
        Value::Object(fields) => {
            fields.values_mut().for_each(|value| change_leaves(value, change));
        }
        leaf => change(leaf),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_changed_response_keeps_its_shape_and_the_texts_of_the_request() {
        let original = json!({"ok": true, "data": [{"status": "paid", "by": "pay-1", "fee": 5}]});
        let words = json!({"ok": true, "data": [{"status": "x 001", "by": "pay-1", "fee": 5}]});
        let values = json!({"ok": false, "data": [{"status": UNKNOWN_WORD, "by": "pay-1", "fee": 987_654_321}]});
        let is_kept = |text: &str| text == "pay-1";
        assert_eq!(with_words(original.clone(), "x", &is_kept), words);
        assert_eq!(with_other_values(original, &is_kept), values);
        assert!(
            crate::check::invariants::contains_personal_data(PERSONAL_DATA, &[]),
            "the customer of the examples"
        );
    }

    #[test]
    fn failures_that_change_the_example_need_json() {
        let (text, object) = (response(200, "text/plain", "done"), response(200, "", r#"{"a":1}"#));
        for failure in &FAILURES {
            let changes = !matches!(failure.meaning, Outage | WrongAddress | AccountRejected)
                || failure.name == "200 with truncated JSON";
            assert_eq!(failure.applies_to(None), !changes, "{failure:?}");
            assert_eq!(failure.applies_to(Some(&text)), !changes, "{failure:?}");
            assert!(failure.applies_to(Some(&object)), "{failure:?}");
        }
    }
}
