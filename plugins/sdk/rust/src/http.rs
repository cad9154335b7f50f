//! HTTP requests through the host: over HTTPS, to granted hosts only, without following redirects.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::port;
use crate::shared::tollhouse::plugin::http as wire;
use crate::types::Fault;

/// An HTTP request. Header values and the body may contain placeholders from [`crate::vault`]; the
/// URL must not.
#[derive(Debug, Clone)]
#[must_use = "a request is not sent before `send`"]
pub struct Request {
    wire: wire::Request,
    /// The error of serializing the body, returned by `send`.
    unfit: Option<Fault>,
}

impl Request {
    /// Creates a request with any method.
    pub fn new(method: &str, url: impl Into<String>) -> Request {
        let wire = wire::Request {
            method: method.to_owned(),
            url: url.into(),
            headers: Vec::new(),
            body: None,
            timeout_ms: None,
        };
        Request { wire, unfit: None }
    }

    /// Creates a GET request.
    pub fn get(url: impl Into<String>) -> Request {
        Request::new("GET", url)
    }

    /// Creates a POST request.
    pub fn post(url: impl Into<String>) -> Request {
        Request::new("POST", url)
    }

    /// Creates a PUT request.
    pub fn put(url: impl Into<String>) -> Request {
        Request::new("PUT", url)
    }

    /// Creates a DELETE request.
    pub fn delete(url: impl Into<String>) -> Request {
        Request::new("DELETE", url)
    }

    /// Adds a header.
    pub fn header(mut self, name: &str, value: impl Into<String>) -> Request {
        self.wire.headers.push((name.to_owned(), value.into()));
        self
    }

    /// Adds the header `authorization: Bearer ...`, usually with a placeholder.
    pub fn bearer(self, token: &str) -> Request {
        self.header("authorization", format!("Bearer {token}"))
    }

    /// Adds the header `authorization: Basic ...` with the result of [`crate::vault::basic`].
    pub fn basic(self, credentials: &str) -> Request {
        self.header("authorization", format!("Basic {credentials}"))
    }

    /// Sets the body.
    pub fn body(mut self, body: impl Into<Vec<u8>>) -> Request {
        self.wire.body = Some(body.into());
        self
    }

    /// Sets a JSON body and its content type.
    pub fn json(mut self, value: &impl Serialize) -> Request {
        match serde_json::to_vec(value) {
            Ok(body) => self.header("content-type", "application/json").body(body),
            Err(_) => {
                self.unfit = Some(Fault::other("the request body cannot be serialized to JSON"));
                self
            }
        }
    }

    /// Sets the body of an HTML form and its content type. Do not put a secret's placeholder in it:
    /// the secret's value would not be percent-encoded.
    pub fn form(self, fields: &[(&str, &str)]) -> Request {
        let fields =
            fields.iter().map(|(name, value)| format!("{}={}", encode(name), encode(value)));
        let body = fields.collect::<Vec<_>>().join("&");
        self.header("content-type", "application/x-www-form-urlencoded").body(body)
    }

    /// Sets the timeout. The host caps it at the remaining time of the call.
    pub fn timeout_ms(mut self, timeout_ms: u32) -> Request {
        self.wire.timeout_ms = Some(timeout_ms);
        self
    }

    /// Sends the request. Every HTTP response is `Ok`, whatever its status. A fault is
    /// `unavailable` with the code `timeout`, `connect` or `cut`, or `misconfigured` if the request
    /// is not permitted.
    pub fn send(self) -> Result<Response, Fault> {
        if let Some(fault) = self.unfit {
            return Err(fault);
        }
        let wire::Response { status, headers, body } = port::http::send(&self.wire)?;
        Ok(Response { status, headers, body })
    }
}

/// An HTTP response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Response {
    /// The HTTP status.
    pub status: u16,
    /// Header names and values.
    pub headers: Vec<(String, String)>,
    /// The complete body.
    pub body: Vec<u8>,
}

impl Response {
    /// Returns whether the status is 2xx.
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// Returns the first header of this name, ignoring case.
    pub fn header(&self, name: &str) -> Option<&str> {
        header(&self.headers, name)
    }

    /// Returns the body as text, with invalid UTF-8 replaced by U+FFFD.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// Deserializes the body from JSON. Any other body is a fault of the upstream: `unavailable`,
    /// code `unexpected-answer`. The message never quotes the body, which may contain personal
    /// data.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, Fault> {
        serde_json::from_slice(&self.body).map_err(|error| {
            let status = self.status;
            let (line, column) = (error.line(), error.column());
            Fault::unavailable(format!(
                "HTTP {status} with an unexpected body (line {line}, column {column})"
            ))
            .with_code("unexpected-answer")
        })
    }
}

/// Returns the first header of this name, ignoring case.
pub fn header<'a>(headers: &'a [(String, String)], name: &str) -> Option<&'a str> {
    headers.iter().find(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
}

/// Joins `base` and `path` with exactly one slash.
pub fn join(base: &str, path: &str) -> String {
    format!("{}/{}", base.trim_end_matches('/'), path.trim_start_matches('/'))
}

/// Percent-encodes a text as one path segment or query value: all bytes except ASCII letters,
/// digits and `-._~`.
pub fn encode(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                encoded.push(char::from(byte));
            }
            _ => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_joined_by_one_slash_and_values_are_encoded() {
        assert_eq!(join("https://a.test/", "/x"), "https://a.test/x");
        assert_eq!(join("https://a.test/v3", "x"), "https://a.test/v3/x");
        assert_eq!(encode("a/../b?c=1&é"), "a%2F..%2Fb%3Fc%3D1%26%C3%A9");
    }

    #[test]
    fn form_fields_are_percent_encoded() {
        let request =
            Request::post("https://a.test").form(&[("To", "+234"), ("Body", "a&To=b c\né")]);
        assert_eq!(request.wire.body.unwrap(), b"To=%2B234&Body=a%26To%3Db%20c%0A%C3%A9");
        let form = "application/x-www-form-urlencoded";
        assert_eq!(request.wire.headers, [("content-type".to_owned(), form.to_owned())]);
    }

    #[test]
    fn an_unexpected_body_is_not_quoted() {
        let body = br#"{"name":"Ada Obi"}"#.to_vec();
        let fault = Response { status: 200, headers: vec![], body }.json::<Vec<u8>>().unwrap_err();
        assert!(fault.retryable);
        assert_eq!(fault.message, "HTTP 200 with an unexpected body (line 1, column 0)");
    }
}
