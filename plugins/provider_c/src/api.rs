//! Requests to Monnify: authentication, the response envelope, and the mapping of errors to faults.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tollhouse_plugin::http::{Request, Response};
use tollhouse_plugin::raw_json::RawJson;
use tollhouse_plugin::types::Fault;
use tollhouse_plugin::{loose, settings};

use crate::token;

/// Names of the account's credentials in the manifest. The secret key also signs webhooks.
pub(crate) const API_KEY: &str = "api_key";
pub(crate) const SECRET_KEY: &str = "secret_key";

/// The contract's code for a reference that is already in use.
pub(crate) const DUPLICATE_REFERENCE: &str = "duplicate-reference";

/// Detail of a refusal: its HTTP status.
const HTTP_STATUS: &str = "http_status";

/// Timeout of a request, and of the login that it may need.
#[derive(Clone, Copy)]
pub(crate) enum ResponseTimeout {
    /// The remaining time of the call.
    Long,
    Short,
}

impl ResponseTimeout {
    const SHORT_MS: u32 = 3_000;

    pub(crate) fn send(self, request: Request) -> Result<Response, Fault> {
        match self {
            ResponseTimeout::Long => request.send(),
            ResponseTimeout::Short => request.timeout_ms(ResponseTimeout::SHORT_MS).send(),
        }
    }
}

/// Sends a GET request and returns the envelope's body.
pub(crate) fn get(path: &str) -> Result<RawJson, Fault> {
    send(Request::get(url(path)?), ResponseTimeout::Long)
}

/// Sends a GET request with a short timeout and returns the envelope's body.
pub(crate) fn get_with_short_timeout(path: &str) -> Result<RawJson, Fault> {
    send(Request::get(url(path)?), ResponseTimeout::Short)
}

/// Sends a POST request and returns the envelope's body.
pub(crate) fn post(path: &str, body: &impl Serialize) -> Result<RawJson, Fault> {
    send(Request::post(url(path)?).json(body), ResponseTimeout::Long)
}

/// Sends a PATCH request without a body and returns the envelope's body.
pub(crate) fn patch(path: &str) -> Result<RawJson, Fault> {
    send(Request::new("PATCH", url(path)?), ResponseTimeout::Long)
}

/// Sends a DELETE request and returns the envelope's body.
pub(crate) fn delete(path: &str) -> Result<RawJson, Fault> {
    send(Request::delete(url(path)?), ResponseTimeout::Long)
}

pub(crate) fn url(path: &str) -> Result<String, Fault> {
    settings::url("base_url", path)
}

/// Sends a request. A token may expire early; the request was not executed then, so it is repeated
/// once with a new token.
fn send(request: Request, wait: ResponseTimeout) -> Result<RawJson, Fault> {
    let mut response = wait.send(request.clone().bearer(&token::get_or_log_in(wait)?))?;
    if response.status == 401 {
        response = wait.send(request.bearer(&token::log_in(wait)?))?;
    }
    parse_envelope(&response)
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Envelope {
    request_successful: bool,
    #[serde(default)]
    response_message: Value,
    #[serde(default)]
    response_code: Value,
    #[serde(default)]
    response_body: RawJson,
}

/// Returns the envelope's body, or maps the response to a fault.
pub(crate) fn parse_envelope(response: &Response) -> Result<RawJson, Fault> {
    check_service(response)?;
    let envelope: Envelope = response.json()?;
    if envelope.request_successful && response.is_success() {
        return Ok(envelope.response_body);
    }
    let code = loose::text(&envelope.response_code);
    Err(refusal(response.status, &code, &loose::text(&envelope.response_message)))
}

/// Maps HTTP statuses whose meaning does not depend on the body.
fn check_service(response: &Response) -> Result<(), Fault> {
    match response.status {
        401 => Err(Fault::misconfigured("Monnify does not accept the API key and secret key")),
        status @ (408 | 429 | 500..) => {
            Err(Fault::unavailable(format!("Monnify returned {status}"))
                .with_code(&format!("http-{status}")))
        }
        _ => Ok(()),
    }
}

fn refusal(status: u16, code: &str, message: &str) -> Fault {
    let words = message.to_lowercase();
    let mentions = |phrases: &[&str]| phrases.iter().any(|phrase| words.contains(phrase));
    if mentions(&["duplicate", "been used", "already exist", "already used"]) {
        return Fault::refused(DUPLICATE_REFERENCE, message);
    }
    let unknown = ["not found", "no transaction", "not exist", "could not find"];
    if status == 404 || matches!(code, "R1" | "R7") || mentions(&unknown) {
        return Fault::not_found(message).with_code(code);
    }
    match invalid_field(&words) {
        Some(field) if matches!(status, 400 | 422) => {
            Fault::invalid(field, message).with_code(code)
        }
        _ => Fault::refused(code, message).with_detail(HTTP_STATUS, &status.to_string()),
    }
}

/// Returns whether the operation is not enabled for the merchant.
pub(crate) fn is_forbidden(fault: &Fault) -> bool {
    fault.details.iter().any(|(name, value)| name == HTTP_STATUS && value == "403")
}

/// Returns the contract's field that a validation error refers to.
fn invalid_field(words: &str) -> Option<&'static str> {
    let known = [
        ("email", "email"),
        ("customeremail", "email"),
        ("amount", "amount"),
        ("currency", "currency"),
        ("currencycode", "currency"),
        ("paymentmethods", "channels"),
        ("paymentreference", "reference"),
        ("metadata", "metadata"),
    ];
    words
        .split(|c: char| !c.is_alphanumeric())
        .find_map(|word| known.iter().find(|(theirs, _)| *theirs == word))
        .map(|(_, ours)| *ours)
}
