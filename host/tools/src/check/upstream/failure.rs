//! Upstream failures.

use std::cell::Cell;

use bytes::Bytes;
use serde_json::{Map, Value};

use tollhouse_platform::outbound::egress::{EgressError, EgressRequest, EgressResponse};

const HTML_PAGE: &str = "<!DOCTYPE html>\n<html><head><title>Error</title></head><body><h1>Something went wrong</h1></body></html>\n";
/// A word that no upstream uses.
const UNKNOWN_WORD: &str = "unheard-of";
/// Personal data of the example customer, which upstreams may put into messages.
const PERSONAL_DATA: &str = "Ada Obi, ada@example.com, +2348012345678";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UpstreamFailure {
    NoConnection,
    Timeout,
    ConnectionLost,
    TooLarge,
    ServerError,
    TooManyRequests,
    HtmlPage,
    EmptyBody,
    EmptyObject,
    TruncatedJson,
    NotFoundPage,
    Unauthorized,
    Forbidden,
    /// The example response, with all strings replaced.
    UnknownWords,
    /// The example response, with all strings, numbers and booleans replaced.
    UnknownValues,
    /// Status 400, with the example response and all strings replaced.
    Refusal,
    /// The example response, with all strings replaced by personal data.
    PersonalData,
    RefusalWithPersonalData,
}

/// The meaning of a failure for the plugin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureMeaning {
    /// Out of order, slow or unreadable.
    Outage,
    /// Out of order, or the address is wrong.
    WrongAddress,
    /// The account is not authorized.
    AccountRejected,
    /// A response with unknown words.
    UnknownWords,
    /// A response with unknown words and values.
    UnknownValues,
    /// A refusal for an unknown reason.
    Refused,
}

impl UpstreamFailure {
    pub const ALL: [UpstreamFailure; 18] = [
        UpstreamFailure::NoConnection,
        UpstreamFailure::Timeout,
        UpstreamFailure::ConnectionLost,
        UpstreamFailure::TooLarge,
        UpstreamFailure::ServerError,
        UpstreamFailure::TooManyRequests,
        UpstreamFailure::HtmlPage,
        UpstreamFailure::EmptyBody,
        UpstreamFailure::EmptyObject,
        UpstreamFailure::TruncatedJson,
        UpstreamFailure::NotFoundPage,
        UpstreamFailure::Unauthorized,
        UpstreamFailure::Forbidden,
        UpstreamFailure::UnknownWords,
        UpstreamFailure::UnknownValues,
        UpstreamFailure::Refusal,
        UpstreamFailure::PersonalData,
        UpstreamFailure::RefusalWithPersonalData,
    ];

    /// Returns the failure's name in the report.
    pub fn name(self) -> &'static str {
        match self {
            UpstreamFailure::NoConnection => "no connection",
            UpstreamFailure::Timeout => "timeout",
            UpstreamFailure::ConnectionLost => "connection cut after sending",
            UpstreamFailure::TooLarge => "200 with a body over the limit",
            UpstreamFailure::ServerError => "500 with an HTML page",
            UpstreamFailure::TooManyRequests => "429 with an HTML page",
            UpstreamFailure::HtmlPage => "200 with an HTML page",
            UpstreamFailure::EmptyBody => "200 with an empty body",
            UpstreamFailure::EmptyObject => "200 with {}",
            UpstreamFailure::TruncatedJson => "200 with truncated JSON",
            UpstreamFailure::NotFoundPage => "404 with an HTML page",
            UpstreamFailure::Unauthorized => "401 with {}",
            UpstreamFailure::Forbidden => "403 with {}",
            UpstreamFailure::UnknownWords => "the example with unknown words",
            UpstreamFailure::UnknownValues => {
                "the example with unknown words, numbers and booleans"
            }
            UpstreamFailure::Refusal => "400 with unknown words",
            UpstreamFailure::PersonalData => "the example with personal data",
            UpstreamFailure::RefusalWithPersonalData => "400 with personal data",
        }
    }

    pub fn meaning(self) -> FailureMeaning {
        match self {
            UpstreamFailure::NotFoundPage => FailureMeaning::WrongAddress,
            UpstreamFailure::Unauthorized | UpstreamFailure::Forbidden => {
                FailureMeaning::AccountRejected
            }
            UpstreamFailure::UnknownWords | UpstreamFailure::PersonalData => {
                FailureMeaning::UnknownWords
            }
            UpstreamFailure::UnknownValues => FailureMeaning::UnknownValues,
            UpstreamFailure::Refusal | UpstreamFailure::RefusalWithPersonalData => {
                FailureMeaning::Refused
            }
            _ => FailureMeaning::Outage,
        }
    }

    /// Returns whether the response contains personal data, which must not be repeated.
    pub fn contains_personal_data(self) -> bool {
        matches!(self, UpstreamFailure::PersonalData | UpstreamFailure::RefusalWithPersonalData)
    }

    /// Returns whether the failure applies to a request. Changing its example requires JSON.
    pub fn applies_to(self, example: Option<&EgressResponse>) -> bool {
        let needs_example = self == UpstreamFailure::TruncatedJson
            || matches!(
                self.meaning(),
                FailureMeaning::UnknownWords
                    | FailureMeaning::UnknownValues
                    | FailureMeaning::Refused
            );
        !needs_example || example.is_some_and(|example| parse_json(example).is_some())
    }

    pub fn respond(
        self,
        request: &EgressRequest,
        example: Option<&EgressResponse>,
    ) -> Result<EgressResponse, EgressError> {
        let to = url::Url::parse(&request.url).ok();
        let to = to.and_then(|url| url.host_str().map(str::to_owned)).unwrap_or_default();
        let page = |status| Ok(response_with(status, "text/html", HTML_PAGE));
        let changed = |status: Option<u16>, change: &dyn Fn(&Value) -> Value| {
            let (example, told) = example.zip(example.and_then(parse_json)).unzip();
            let status = status.or(example.map(|example| example.status)).unwrap_or(200);
            Ok(response_with(
                status,
                "application/json",
                &change(&told.unwrap_or_default()).to_string(),
            ))
        };
        match self {
            UpstreamFailure::NoConnection => Err(EgressError::Connect(to)),
            UpstreamFailure::Timeout => Err(EgressError::Timeout(to)),
            UpstreamFailure::ConnectionLost => Err(EgressError::ConnectionLost(to)),
            UpstreamFailure::TooLarge => {
                let body = Bytes::from(vec![b' '; request.max_response_bytes.saturating_add(1)]);
                Ok(EgressResponse { body, ..response_with(200, "application/json", "") })
            }
            UpstreamFailure::ServerError => page(500),
            UpstreamFailure::TooManyRequests => page(429),
            UpstreamFailure::HtmlPage => page(200),
            UpstreamFailure::NotFoundPage => page(404),
            UpstreamFailure::EmptyBody => Ok(response_with(200, "application/json", "")),
            UpstreamFailure::EmptyObject => Ok(response_with(200, "application/json", "{}")),
            UpstreamFailure::Unauthorized => Ok(response_with(401, "application/json", "{}")),
            UpstreamFailure::Forbidden => Ok(response_with(403, "application/json", "{}")),
            UpstreamFailure::TruncatedJson => {
                let body = example.map(|example| example.body.clone()).unwrap_or_default();
                Ok(EgressResponse {
                    body: body.slice(..body.len() / 2),
                    ..response_with(200, "application/json", "")
                })
            }
            UpstreamFailure::UnknownWords => changed(None, &|told| with_words(told, UNKNOWN_WORD)),
            UpstreamFailure::PersonalData => changed(None, &|told| with_words(told, PERSONAL_DATA)),
            UpstreamFailure::Refusal => changed(Some(400), &|told| with_words(told, UNKNOWN_WORD)),
            UpstreamFailure::RefusalWithPersonalData => {
                changed(Some(400), &|told| with_words(told, PERSONAL_DATA))
            }
            UpstreamFailure::UnknownValues => changed(None, &with_other_values),
        }
    }
}

fn response_with(status: u16, kind: &str, body: &str) -> EgressResponse {
    let headers = vec![("content-type".to_owned(), kind.to_owned())];
    EgressResponse { status, headers, body: Bytes::copy_from_slice(body.as_bytes()) }
}

fn parse_json(answer: &EgressResponse) -> Option<Value> {
    let told: Value = serde_json::from_slice(&answer.body).ok()?;
    (told.is_object() || told.is_array()).then_some(told)
}

/// Replaces each string by `word` and a number, so that no two are equal.
fn with_words(value: &Value, word: &str) -> Value {
    let words = Cell::new(0);
    map_leaves(value, &|leaf| match leaf {
        Value::String(_) => {
            words.set(words.get() + 1);
            format!("{word} {:03}", words.get()).into()
        }
        other => other.clone(),
    })
}

/// Replaces all values, so that only the shape remains.
fn with_other_values(value: &Value) -> Value {
    map_leaves(value, &|leaf| match leaf {
        Value::String(_) => UNKNOWN_WORD.into(),
        Value::Bool(told) => Value::Bool(!told),
        Value::Number(_) => 987_654_321.into(),
        other => other.clone(),
    })
}

fn map_leaves(value: &Value, change: &dyn Fn(&Value) -> Value) -> Value {
    match value {
        Value::Array(values) => values.iter().map(|value| map_leaves(value, change)).collect(),
        Value::Object(fields) => {
            let fields =
                fields.iter().map(|(name, value)| (name.clone(), map_leaves(value, change)));
            Value::Object(fields.collect::<Map<String, Value>>())
        }
        leaf => change(leaf),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_changed_response_keeps_its_shape_but_no_words() {
        let told = json!({"ok": true, "data": [{"status": "paid", "by": "card", "fee": 5}]});
        let words = json!({"ok": true, "data": [{"status": "x 001", "by": "x 002", "fee": 5}]});
        let values = json!({"ok": false, "data": [{"status": UNKNOWN_WORD, "by": UNKNOWN_WORD, "fee": 987_654_321}]});
        assert_eq!((with_words(&told, "x"), with_other_values(&told)), (words, values));
        assert!(
            crate::check::invariants::contains_personal_data(PERSONAL_DATA, &[]),
            "the customer of the examples"
        );
    }

    #[test]
    fn failures_that_change_the_example_need_json() {
        let (text, object) =
            (response_with(200, "text/plain", "done"), response_with(200, "", r#"{"a":1}"#));
        for trouble in UpstreamFailure::ALL {
            let changes = !matches!(
                trouble.meaning(),
                FailureMeaning::Outage
                    | FailureMeaning::WrongAddress
                    | FailureMeaning::AccountRejected
            ) || trouble == UpstreamFailure::TruncatedJson;
            assert_eq!(trouble.applies_to(None), !changes, "{trouble:?}");
            assert_eq!(trouble.applies_to(Some(&text)), !changes, "{trouble:?}");
            assert!(trouble.applies_to(Some(&object)), "{trouble:?}");
        }
    }
}
