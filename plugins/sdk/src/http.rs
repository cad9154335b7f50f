//! The only way out of the sandbox: https, towards the hosts that the operator granted, without redirects.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::port;
use crate::shared::tollhouse::plugin::http as wire;
use crate::types::Fault;

/// A request on its way to be sent. Header values and the body may hold placeholders from [`crate::vault`]; the URL may
/// not.
#[derive(Debug, Clone)]
#[must_use = "nothing leaves before `send`"]
pub struct Request {
    wire: wire::Request,
    /// Why the body could not be written, told by `send`.
    unfit: Option<Fault>,
}

impl Request {
    /// Any method.
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

    /// A GET.
    pub fn get(url: impl Into<String>) -> Request {
        Request::new("GET", url)
    }

    /// A POST.
    pub fn post(url: impl Into<String>) -> Request {
        Request::new("POST", url)
    }

    /// A PUT.
    pub fn put(url: impl Into<String>) -> Request {
        Request::new("PUT", url)
    }

    /// A DELETE.
    pub fn delete(url: impl Into<String>) -> Request {
        Request::new("DELETE", url)
    }

    /// One more header.
    pub fn header(mut self, name: &str, value: impl Into<String>) -> Request {
        self.wire.headers.push((name.to_owned(), value.into()));
        self
    }

    /// The header `authorization: Bearer ...`, usually with a placeholder.
    pub fn bearer(self, token: &str) -> Request {
        self.header("authorization", format!("Bearer {token}"))
    }

    /// The header `authorization: Basic ...`, with what [`crate::vault::basic`] gave.
    pub fn basic(self, credentials: &str) -> Request {
        self.header("authorization", format!("Basic {credentials}"))
    }

    /// A body as it is.
    pub fn body(mut self, body: impl Into<Vec<u8>>) -> Request {
        self.wire.body = Some(body.into());
        self
    }

    /// A JSON body and its content type.
    pub fn json(mut self, value: &impl Serialize) -> Request {
        match serde_json::to_vec(value) {
            Ok(body) => self.header("content-type", "application/json").body(body),
            Err(_) => {
                self.unfit = Some(Fault::other("the plugin's own request is no valid JSON"));
                self
            }
        }
    }

    /// The body of an HTML form and its content type. A secret's placeholder does not belong here: its value would not
    /// be encoded.
    pub fn form(self, fields: &[(&str, &str)]) -> Request {
        let fields =
            fields.iter().map(|(name, value)| format!("{}={}", encode(name), encode(value)));
        let body = fields.collect::<Vec<_>>().join("&");
        self.header("content-type", "application/x-www-form-urlencoded").body(body)
    }

    /// How long to wait; at most what remains of the call's own time.
    pub fn timeout_ms(mut self, timeout_ms: u32) -> Request {
        self.wire.timeout_ms = Some(timeout_ms);
        self
    }

    /// Sends it. Every HTTP answer is `Ok`, whatever its status; a fault is `unavailable` with the code `timeout`,
    /// `connect` or `cut`, or `misconfigured` when the request may not leave.
    pub fn send(self) -> Result<Response, Fault> {
        if let Some(fault) = self.unfit {
            return Err(fault);
        }
        let wire::Response { status, headers, body } = port::http::send(&self.wire)?;
        Ok(Response { status, headers, body })
    }
}

/// What came back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Response {
    /// The HTTP status.
    pub status: u16,
    /// Names and values.
    pub headers: Vec<(String, String)>,
    /// The body, whole.
    pub body: Vec<u8>,
}

impl Response {
    /// Whether the status is 2xx.
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// The first header of that name, in whatever case.
    pub fn header(&self, name: &str) -> Option<&str> {
        header(&self.headers, name)
    }

    /// The body as text; what is no UTF-8 is replaced.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The body read as JSON. When it is something else the upstream is out of order: `unavailable`, code
    /// `unexpected-answer`. Nothing of the body is quoted, since it may name people.
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

/// The first header of that name, in whatever case.
pub fn header<'a>(headers: &'a [(String, String)], name: &str) -> Option<&'a str> {
    headers.iter().find(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
}

/// `base` with `path` behind it and exactly one slash between the two.
pub fn join(base: &str, path: &str) -> String {
    format!("{}/{}", base.trim_end_matches('/'), path.trim_start_matches('/'))
}

/// A text as one segment of a path or one value of a query: all but letters, digits and `-._~` as `%XX`.
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
    fn urls_have_one_slash_and_no_smuggled_path() {
        assert_eq!(join("https://a.test/", "/x"), "https://a.test/x");
        assert_eq!(join("https://a.test/v3", "x"), "https://a.test/v3/x");
        assert_eq!(encode("a/../b?c=1&é"), "a%2F..%2Fb%3Fc%3D1%26%C3%A9");
    }

    #[test]
    fn a_form_says_what_it_was_given_and_no_more() {
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
