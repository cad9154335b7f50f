//! Upstream failures.

use std::cell::Cell;

use bytes::Bytes;
use serde_json::{Map, Value};

use tollhouse_platform::outbound::egress::{EgressError, EgressRequest, EgressResponse};

const PAGE: &str = "<!DOCTYPE html>\n<html><head><title>Error</title></head><body><h1>Something went wrong</h1></body></html>\n";
/// A word that no upstream uses.
const WORD: &str = "unheard-of";
/// Personal data of the example customer, which upstreams may put into messages.
const GOSSIP: &str = "Ada Obi, ada@example.com, +2348012345678";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    NoConnection,
    TimeOut,
    Cut,
    TooLarge,
    ServerError,
    Overloaded,
    Page,
    Nothing,
    EmptyObject,
    HalfAnObject,
    NotFoundPage,
    Unauthorized,
    Forbidden,
    /// The example response, with all strings replaced.
    OtherWords,
    /// The example response, with all strings, numbers and booleans replaced.
    OtherValues,
    /// Status 400, with the example response and all strings replaced.
    Refusal,
    /// The example response, with all strings replaced by personal data.
    Gossip,
    RefusalWithGossip,
}

/// The meaning of a failure for the plugin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// Out of order, slow or unreadable.
    OutOfOrder,
    /// Out of order, or the address is wrong.
    WrongAddress,
    /// The account is not authorized.
    NotLetIn,
    /// A response with unknown words.
    UnknownWords,
    /// A response with unknown words and values.
    UnknownValues,
    /// A refusal for an unknown reason.
    Refused,
}

impl Trouble {
    pub const ALL: [Trouble; 18] = [
        Trouble::NoConnection,
        Trouble::TimeOut,
        Trouble::Cut,
        Trouble::TooLarge,
        Trouble::ServerError,
        Trouble::Overloaded,
        Trouble::Page,
        Trouble::Nothing,
        Trouble::EmptyObject,
        Trouble::HalfAnObject,
        Trouble::NotFoundPage,
        Trouble::Unauthorized,
        Trouble::Forbidden,
        Trouble::OtherWords,
        Trouble::OtherValues,
        Trouble::Refusal,
        Trouble::Gossip,
        Trouble::RefusalWithGossip,
    ];

    /// Returns the failure's name in the report.
    pub fn name(self) -> &'static str {
        match self {
            Trouble::NoConnection => "no connection",
            Trouble::TimeOut => "timeout",
            Trouble::Cut => "connection cut after sending",
            Trouble::TooLarge => "200 with a body over the limit",
            Trouble::ServerError => "500 with an HTML page",
            Trouble::Overloaded => "429 with an HTML page",
            Trouble::Page => "200 with an HTML page",
            Trouble::Nothing => "200 with an empty body",
            Trouble::EmptyObject => "200 with {}",
            Trouble::HalfAnObject => "200 with truncated JSON",
            Trouble::NotFoundPage => "404 with an HTML page",
            Trouble::Unauthorized => "401 with {}",
            Trouble::Forbidden => "403 with {}",
            Trouble::OtherWords => "the example with unknown words",
            Trouble::OtherValues => "the example with unknown words, numbers and booleans",
            Trouble::Refusal => "400 with unknown words",
            Trouble::Gossip => "the example with personal data",
            Trouble::RefusalWithGossip => "400 with personal data",
        }
    }

    pub fn meaning(self) -> Meaning {
        match self {
            Trouble::NotFoundPage => Meaning::WrongAddress,
            Trouble::Unauthorized | Trouble::Forbidden => Meaning::NotLetIn,
            Trouble::OtherWords | Trouble::Gossip => Meaning::UnknownWords,
            Trouble::OtherValues => Meaning::UnknownValues,
            Trouble::Refusal | Trouble::RefusalWithGossip => Meaning::Refused,
            _ => Meaning::OutOfOrder,
        }
    }

    /// Returns whether the response contains personal data, which must not be repeated.
    pub fn gossips(self) -> bool {
        matches!(self, Trouble::Gossip | Trouble::RefusalWithGossip)
    }

    /// Returns whether the failure applies to a request. Changing its example requires JSON.
    pub fn fits(self, example: Option<&EgressResponse>) -> bool {
        let needs_example = self == Trouble::HalfAnObject
            || matches!(
                self.meaning(),
                Meaning::UnknownWords | Meaning::UnknownValues | Meaning::Refused
            );
        !needs_example || example.is_some_and(|example| json(example).is_some())
    }

    pub fn answer(
        self,
        request: &EgressRequest,
        example: Option<&EgressResponse>,
    ) -> Result<EgressResponse, EgressError> {
        let to = url::Url::parse(&request.url).ok();
        let to = to.and_then(|url| url.host_str().map(str::to_owned)).unwrap_or_default();
        let page = |status| Ok(answer(status, "text/html", PAGE));
        let changed = |status: Option<u16>, change: &dyn Fn(&Value) -> Value| {
            let (example, told) = example.zip(example.and_then(json)).unzip();
            let status = status.or(example.map(|example| example.status)).unwrap_or(200);
            Ok(answer(status, "application/json", &change(&told.unwrap_or_default()).to_string()))
        };
        match self {
            Trouble::NoConnection => Err(EgressError::Connect(to)),
            Trouble::TimeOut => Err(EgressError::Timeout(to)),
            Trouble::Cut => Err(EgressError::ConnectionLost(to)),
            Trouble::TooLarge => {
                let body = Bytes::from(vec![b' '; request.max_response_bytes.saturating_add(1)]);
                Ok(EgressResponse { body, ..answer(200, "application/json", "") })
            }
            Trouble::ServerError => page(500),
            Trouble::Overloaded => page(429),
            Trouble::Page => page(200),
            Trouble::NotFoundPage => page(404),
            Trouble::Nothing => Ok(answer(200, "application/json", "")),
            Trouble::EmptyObject => Ok(answer(200, "application/json", "{}")),
            Trouble::Unauthorized => Ok(answer(401, "application/json", "{}")),
            Trouble::Forbidden => Ok(answer(403, "application/json", "{}")),
            Trouble::HalfAnObject => {
                let body = example.map(|example| example.body.clone()).unwrap_or_default();
                Ok(EgressResponse {
                    body: body.slice(..body.len() / 2),
                    ..answer(200, "application/json", "")
                })
            }
            Trouble::OtherWords => changed(None, &|told| worded(told, WORD)),
            Trouble::Gossip => changed(None, &|told| worded(told, GOSSIP)),
            Trouble::Refusal => changed(Some(400), &|told| worded(told, WORD)),
            Trouble::RefusalWithGossip => changed(Some(400), &|told| worded(told, GOSSIP)),
            Trouble::OtherValues => changed(None, &other),
        }
    }
}

fn answer(status: u16, kind: &str, body: &str) -> EgressResponse {
    let headers = vec![("content-type".to_owned(), kind.to_owned())];
    EgressResponse { status, headers, body: Bytes::copy_from_slice(body.as_bytes()) }
}

fn json(answer: &EgressResponse) -> Option<Value> {
    let told: Value = serde_json::from_slice(&answer.body).ok()?;
    (told.is_object() || told.is_array()).then_some(told)
}

/// Replaces each string by `word` and a number, so that no two are equal.
fn worded(value: &Value, word: &str) -> Value {
    let words = Cell::new(0);
    map(value, &|leaf| match leaf {
        Value::String(_) => {
            words.set(words.get() + 1);
            format!("{word} {:03}", words.get()).into()
        }
        other => other.clone(),
    })
}

/// Replaces all values, so that only the shape remains.
fn other(value: &Value) -> Value {
    map(value, &|leaf| match leaf {
        Value::String(_) => WORD.into(),
        Value::Bool(told) => Value::Bool(!told),
        Value::Number(_) => 987_654_321.into(),
        other => other.clone(),
    })
}

fn map(value: &Value, change: &dyn Fn(&Value) -> Value) -> Value {
    match value {
        Value::Array(values) => values.iter().map(|value| map(value, change)).collect(),
        Value::Object(fields) => {
            let fields = fields.iter().map(|(name, value)| (name.clone(), map(value, change)));
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
        let values =
            json!({"ok": false, "data": [{"status": WORD, "by": WORD, "fee": 987_654_321}]});
        assert_eq!((worded(&told, "x"), other(&told)), (words, values));
        assert!(crate::check::watch::names_somebody(GOSSIP, &[]), "the customer of the examples");
    }

    #[test]
    fn failures_that_change_the_example_need_json() {
        let (text, object) = (answer(200, "text/plain", "done"), answer(200, "", r#"{"a":1}"#));
        for trouble in Trouble::ALL {
            let changes = !matches!(
                trouble.meaning(),
                Meaning::OutOfOrder | Meaning::WrongAddress | Meaning::NotLetIn
            ) || trouble == Trouble::HalfAnObject;
            assert_eq!(trouble.fits(None), !changes, "{trouble:?}");
            assert_eq!(trouble.fits(Some(&text)), !changes, "{trouble:?}");
            assert!(trouble.fits(Some(&object)), "{trouble:?}");
        }
    }
}
