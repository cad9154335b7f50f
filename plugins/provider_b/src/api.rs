//! One call to Flutterwave: authentication, the envelope around every answer, and what its errors mean. They have no codes:
//! what went wrong stands in the message alone.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tollhouse_plugin::http::{Request, Response};
use tollhouse_plugin::told::Told;
use tollhouse_plugin::types::Fault;
use tollhouse_plugin::{loose, settings, vault};

/// The code of the contract for a reference that was used before.
pub(crate) const DUPLICATE_REFERENCE: &str = "duplicate-reference";

/// The envelope of every answer.
#[derive(Deserialize)]
pub(crate) struct Envelope {
    status: String,
    #[serde(default)]
    message: Value,
    #[serde(default)]
    pub(crate) data: Told,
    /// Beside `data` in lists, and where a charge waits for the customer.
    #[serde(default)]
    pub(crate) meta: Value,
}

/// Asks.
pub(crate) fn get(path: &str) -> Result<Envelope, Fault> {
    send(Request::get(url(path)?))
}

/// The same for somebody who does not wait long.
pub(crate) fn get_with_short_timeout(path: &str) -> Result<Envelope, Fault> {
    const SHORT_TIMEOUT_MS: u32 = 3_000;
    send(Request::get(url(path)?).timeout_ms(SHORT_TIMEOUT_MS))
}

/// Orders.
pub(crate) fn post(path: &str, body: &impl Serialize) -> Result<Envelope, Fault> {
    send(Request::post(url(path)?).json(body))
}

fn url(path: &str) -> Result<String, Fault> {
    settings::url("base_url", path)
}

fn send(request: Request) -> Result<Envelope, Fault> {
    let response = request.bearer(&vault::secret("secret_key")?).send()?;
    check_service(&response)?;
    let answer: Envelope = response.json()?;
    if answer.status == "success" && response.is_success() {
        return Ok(answer);
    }
    Err(refusal(response.status, &loose::text(&answer.message)))
}

/// What can be told from the HTTP status alone. A 503 may come after the work was done: what became of it is to be asked.
fn check_service(response: &Response) -> Result<(), Fault> {
    match response.status {
        401 => Err(Fault::misconfigured("Flutterwave does not accept the secret key")),
        403 => Err(Fault::misconfigured("Flutterwave does not let this account do that")),
        status @ (408 | 429 | 500..) => {
            Err(Fault::unavailable(format!("Flutterwave says {status}"))
                .with_code(&format!("http-{status}")))
        }
        _ => Ok(()),
    }
}

fn refusal(status: u16, message: &str) -> Fault {
    let words = message.to_lowercase();
    let says = |phrases: &[&str]| phrases.iter().any(|phrase| words.contains(phrase));
    if says(&["duplicate", "been used", "already exist", "already used"]) {
        return Fault::refused(DUPLICATE_REFERENCE, message);
    }
    if status == 404 || says(&["not found", "was found", "not exist"]) {
        return Fault::not_found(message);
    }
    match invalid_field(&words) {
        Some(field) if status == 400 => Fault::invalid(field, message),
        _ => Fault::refused("", message),
    }
}

/// The field of the contract that a validation error speaks of.
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
