//! Requests to Flutterwave: authentication, the response envelope, and the mapping of errors to
//! faults. Errors have no codes, so they are recognized by their messages.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tollhouse_plugin::http::{Request, Response};
use tollhouse_plugin::raw_json::RawJson;
use tollhouse_plugin::types::Fault;
use tollhouse_plugin::{loose, settings, vault};

/// The contract's code for a reference that is already in use.
pub(crate) const DUPLICATE_REFERENCE: &str = "duplicate-reference";

/// The code of a fault if the API itself, not an intermediary, returns 403.
pub(crate) const FORBIDDEN: &str = "http-403";

/// The envelope of every response.
#[derive(Deserialize)]
pub(crate) struct Envelope {
    status: String,
    #[serde(default)]
    message: Value,
    #[serde(default)]
    pub(crate) data: RawJson,
    /// Next to `data` in lists, and when a charge waits for the customer.
    #[serde(default)]
    pub(crate) meta: Value,
}

/// Sends a GET request.
pub(crate) fn get(path: &str) -> Result<Envelope, Fault> {
    send(Request::get(url(path)?))
}

/// Sends a GET request with a short timeout.
pub(crate) fn get_with_short_timeout(path: &str) -> Result<Envelope, Fault> {
    const SHORT_TIMEOUT_MS: u32 = 3_000;
    send(Request::get(url(path)?).timeout_ms(SHORT_TIMEOUT_MS))
}

/// Sends a POST request.
pub(crate) fn post(path: &str, body: &impl Serialize) -> Result<Envelope, Fault> {
    send(Request::post(url(path)?).json(body))
}

/// Sends a PUT request.
pub(crate) fn put(path: &str, body: &impl Serialize) -> Result<Envelope, Fault> {
    send(Request::put(url(path)?).json(body))
}

fn url(path: &str) -> Result<String, Fault> {
    settings::url("base_url", path)
}

fn send(request: Request) -> Result<Envelope, Fault> {
    let response = request.bearer(&vault::secret("secret_key")?).send()?;
    check_service(&response)?;
    let envelope: Envelope = response.json()?;
    if envelope.status == "success" && response.is_success() {
        return Ok(envelope);
    }
    Err(refusal(response.status, &loose::text(&envelope.message)))
}

/// Maps HTTP statuses whose meaning does not depend on the body. A 503 may follow a successful
/// operation, so its outcome is unknown.
fn check_service(response: &Response) -> Result<(), Fault> {
    match response.status {
        401 => Err(Fault::misconfigured("Flutterwave does not accept the secret key")),
        403 => {
            let fault = Fault::misconfigured("Flutterwave does not permit this account to do that");
            let is_from_api = response.json().is_ok_and(|body: Envelope| body.status == "error");
            Err(if is_from_api { fault.with_code(FORBIDDEN) } else { fault })
        }
        status @ (408 | 429 | 500..) => {
            Err(Fault::unavailable(format!("Flutterwave returned {status}"))
                .with_code(&format!("http-{status}")))
        }
        _ => Ok(()),
    }
}

fn refusal(status: u16, message: &str) -> Fault {
    let words = message.to_lowercase();
    let mentions = |phrases: &[&str]| phrases.iter().any(|phrase| words.contains(phrase));
    if mentions(&["duplicate", "been used", "already exist", "already used"]) {
        return Fault::refused(DUPLICATE_REFERENCE, message);
    }
    if status == 404 || mentions(&["not found", "was found", "not exist"]) {
        return Fault::not_found(message);
    }
    match invalid_field(&words) {
        Some(field) if status == 400 => Fault::invalid(field, message),
        _ => Fault::refused("", message),
    }
}

/// Returns the contract's field that a validation error refers to.
fn invalid_field(words: &str) -> Option<&'static str> {
    let known = [
        ("email", "email"),
        ("amount", "amount"),
        ("currency", "currency"),
        ("payment_options", "channels"),
        ("tx_ref", "reference"),
        ("meta", "metadata"),
    ];
    words
        .split(|c: char| !c.is_alphanumeric() && c != '_')
        .find_map(|word| known.iter().find(|(theirs, _)| *theirs == word))
        .map(|(_, ours)| *ours)
}
