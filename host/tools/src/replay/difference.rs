//! Differences between the effects of two calls.

use serde_json::Map;

use crate::{
    excerpt::{excerpt, excerpts},
    prelude::*,
};
use tollhouse_plugins::recording::replay::{CallEffects, RecordedRequest};

/// A value that differs, or that only one call has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// Path of the value, for example `requests[0].body.amount`.
    pub at: String,
    /// `None`: the value is new.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<Value>,
    /// `None`: the value is gone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<Value>,
}

/// Returns the differences in requests, vault operations and reply, in this order.
pub fn differences(before: &CallEffects, after: &CallEffects) -> Vec<Difference> {
    let parts = |did: &CallEffects| {
        let requests: Value = did.requests.iter().map(request_json).collect();
        [("requests", requests), ("vault", json!(did.vault)), ("reply", parse_nested(&did.reply))]
    };
    let mut found = Vec::new();
    for ((part, before), (_, after)) in parts(before).iter().zip(&parts(after)) {
        compare(part, Some(before), Some(after), &mut found);
    }
    found
}

/// Returns a request with JSON in its body parsed.
fn request_json(request: &RecordedRequest) -> Value {
    let mut headers = Map::new();
    for (name, value) in &request.headers {
        let all = headers.entry(name.to_lowercase()).or_insert_with(|| json!([]));
        if let Value::Array(all) = all {
            all.push(json!(value));
        }
    }
    let RecordedRequest { method, url, body, answered, .. } = request;
    let mut readable =
        json!({ "method": method, "url": url, "headers": headers, "body": parse_container(body) });
    if !answered {
        readable["answer"] = json!("unknown: the recorded call made no such request");
    }
    readable
}

fn parse_nested(value: &Value) -> Value {
    match value {
        Value::String(text) => parse_container(text),
        Value::Array(all) => all.iter().map(parse_nested).collect(),
        Value::Object(all) => Value::Object(
            all.iter().map(|(name, value)| (name.clone(), parse_nested(value))).collect(),
        ),
        _ => value.clone(),
    }
}

/// Parses objects and arrays only: the text `1` is not a number.
fn parse_container(text: &str) -> Value {
    match serde_json::from_str(text) {
        Ok(value @ (Value::Object(_) | Value::Array(_))) => value,
        _ => json!(text),
    }
}

fn compare(at: &str, before: Option<&Value>, after: Option<&Value>, found: &mut Vec<Difference>) {
    match (before, after) {
        (Some(Value::Object(one)), Some(Value::Object(other))) => {
            let names = one.keys().chain(other.keys().filter(|name| !one.contains_key(*name)));
            for name in names {
                compare(&format!("{at}.{name}"), one.get(name), other.get(name), found);
            }
        }
        (Some(Value::Array(one)), Some(Value::Array(other))) => {
            for n in 0..one.len().max(other.len()) {
                compare(&format!("{at}[{n}]"), one.get(n), other.get(n), found);
            }
        }
        (before, after) if before == after => {}
        (before, after) => {
            let (at, before, after) = (at.to_owned(), before.cloned(), after.cloned());
            found.push(Difference { at, before, after });
        }
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = replace_controls(&self.at);
        let text = |value: &Option<Value>| value.as_ref().map(Value::to_string);
        let start = |text: &str| replace_controls(&excerpt(text, MAX_SHOWN_CHARS));
        match (text(&self.before), text(&self.after)) {
            (None, Some(after)) => write!(f, "{at}: {} is new", start(&after)),
            (Some(before), None) => write!(f, "{at}: {} is gone", start(&before)),
            (Some(before), Some(after)) => {
                let [before, after] =
                    excerpts(&before, &after, MAX_SHOWN_CHARS).map(|text| replace_controls(&text));
                write!(f, "{at}: {before}, now {after}")
            }
            (None, None) => f.write_str(&at),
        }
    }
}

/// Replaces control characters, which could move the cursor of a terminal.
fn replace_controls(text: &str) -> String {
    text.replace(char::is_control, "\u{fffd}")
}

/// Maximum length of a shown value, in characters.
const MAX_SHOWN_CHARS: usize = 200;

#[cfg(test)]
mod tests {
    use super::*;

    fn request(url: &str, body: &str) -> RecordedRequest {
        RecordedRequest {
            method: "POST".to_owned(),
            url: url.to_owned(),
            headers: vec![("X-Id".to_owned(), "1".to_owned())],
            body: body.to_owned(),
            answered: true,
        }
    }

    fn did(requests: Vec<RecordedRequest>, reply: Value) -> CallEffects {
        CallEffects { requests, vault: Vec::new(), reply }
    }

    fn difference_texts(before: &CallEffects, after: &CallEffects) -> Vec<String> {
        differences(before, after).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn each_difference_is_reported_with_its_path() {
        let reply = |text: &str, raw: &str| json!({ "payment": { "message": text, "raw": raw } });
        let before = did(
            vec![request("https://a/1", r#"{"amount":1,"c":[1]}"#)],
            reply("paid", r#"{"a":[1,2]}"#),
        );
        assert_eq!(difference_texts(&before, &before), [""; 0]);
        let again = request("https://a/1", r#"{"amount":2,"b":null,"c":[1,null]}"#);
        let mut after = did(vec![again], reply("Paid", r#"{"a":[1]}"#));
        after.requests[0].headers[0].0 = "x-id".to_owned();
        after.requests.push(RecordedRequest { answered: false, ..request("https://a/2", "") });
        let texts = difference_texts(&before, &after);
        assert_eq!(
            texts[..3],
            [
                "requests[0].body.amount: 1, now 2",
                "requests[0].body.c[1]: null is new",
                "requests[0].body.b: null is new",
            ]
        );
        assert!(
            texts[3].starts_with("requests[1]: ") && texts[3].ends_with(" is new"),
            "{}",
            texts[3]
        );
        assert!(texts[3].contains("unknown: the recorded call"), "{}", texts[3]);
        assert_eq!(
            texts[4..],
            ["reply.payment.message: \"paid\", now \"Paid\"", "reply.payment.raw.a[1]: 2 is gone",]
        );
    }

    #[test]
    fn long_values_are_cut_and_shown_from_their_first_difference() {
        let long = |end: &str| Some(json!("é".repeat(1000) + end));
        let at = || "reply\u{1b}[2K".to_owned();
        let new = Difference { at: at(), before: None, after: long("") }.to_string();
        assert!(
            new.starts_with("reply\u{fffd}[2K: ") && new.ends_with("… (2002 bytes) is new"),
            "{new}"
        );
        let changed = Difference { at: at(), before: long("a"), after: long("b") }.to_string();
        assert!(changed.contains("éa\", now …") && changed.ends_with("éb\""), "{changed}");
    }
}
