//! Requests to Paystack: authentication, the response envelope, and the mapping of errors to
//! faults.

use serde::Deserialize;
use serde_json::Value;
use tollhouse_plugin::http::{Request, Response};
use tollhouse_plugin::types::Fault;
use tollhouse_plugin::{settings, vault};

use crate::loose;

/// Name of the account's key in the manifest. The key also signs webhooks.
pub(crate) const SECRET_KEY: &str = "secret_key";

/// The contract's code for a reference that is already in use.
pub(crate) const DUPLICATE_REFERENCE: &str = "duplicate-reference";

/// Items per page of a list: the contract's maximum, which is also Paystack's.
const PER_PAGE: usize = 100;

/// Sends a GET request and returns the envelope's `data`.
pub(crate) fn get(path: &str) -> Result<Value, Fault> {
    send(Request::get(url(path)?))
}

/// Sends a GET request and returns a page of a list, and the cursor of the next page. A cursor is
/// the number of its page.
pub(crate) fn get_page(
    path: &str,
    cursor: Option<&str>,
) -> Result<(Vec<Value>, Option<String>), Fault> {
    let page = page_number(cursor)?;
    let separator = if path.contains('?') { '&' } else { '?' };
    let path = format!("{path}{separator}perPage={PER_PAGE}&page={page}");
    let Envelope { data, meta, .. } = exchange(Request::get(url(&path)?))?;
    let Value::Array(items) = data else {
        return Err(
            Fault::unavailable("Paystack's list cannot be read").with_code("unexpected-answer")
        );
    };
    // Without the number of pages, only a full page has a next one.
    let has_next = match loose::minor(&meta["pageCount"]) {
        Some(pages) => page < pages,
        None => items.len() >= PER_PAGE,
    };
    let next = page.checked_add(1).filter(|_| has_next);
    Ok((items, next.map(|page| page.to_string())))
}

fn page_number(cursor: Option<&str>) -> Result<u64, Fault> {
    let Some(cursor) = cursor else { return Ok(1) };
    cursor.parse().map_err(|_| Fault::invalid("cursor", "not a cursor of this plugin"))
}

/// Sends a POST request and returns the envelope's `data`.
pub(crate) fn post(path: &str, body: &Value) -> Result<Value, Fault> {
    send(Request::post(url(path)?).json(body))
}

/// Sends a PUT request and returns the envelope's `data`.
pub(crate) fn put(path: &str, body: &Value) -> Result<Value, Fault> {
    send(Request::put(url(path)?).json(body))
}

fn url(path: &str) -> Result<String, Fault> {
    settings::url("base_url", path)
}

#[derive(Deserialize)]
struct Envelope {
    status: bool,
    #[serde(default)]
    message: Value,
    #[serde(default)]
    data: Value,
    /// Next to `data` in lists.
    #[serde(default)]
    meta: Value,
    /// Present in errors only, and missing from older ones.
    #[serde(default)]
    code: Value,
    #[serde(default, rename = "type")]
    kind: Value,
}

fn send(request: Request) -> Result<Value, Fault> {
    Ok(exchange(request)?.data)
}

fn exchange(request: Request) -> Result<Envelope, Fault> {
    let response = request.bearer(&vault::secret(SECRET_KEY)?).send()?;
    check_service(&response)?;
    let envelope: Envelope = response.json()?;
    if envelope.status && response.is_success() {
        return Ok(envelope);
    }
    Err(refusal(response.status, &envelope))
}

/// Maps HTTP statuses whose meaning does not depend on the body.
fn check_service(response: &Response) -> Result<(), Fault> {
    match response.status {
        401 => Err(Fault::misconfigured("Paystack does not accept the secret key")),
        status @ (408 | 429 | 500..) => {
            Err(Fault::unavailable(format!("Paystack returned {status}"))
                .with_code(&format!("http-{status}")))
        }
        _ => Ok(()),
    }
}

fn refusal(status: u16, envelope: &Envelope) -> Fault {
    let code = loose::text(&envelope.code);
    let message = loose::text(&envelope.message);
    let words = message.to_lowercase();
    if code == "duplicate_reference" || words.contains("duplicate transaction reference") {
        return Fault::refused(DUPLICATE_REFERENCE, message);
    }
    if status == 404 || code.ends_with("not_found") || words.contains("reference not found") {
        return Fault::not_found(message).with_code(&code);
    }
    let validation = loose::text(&envelope.kind) == "validation_error" || code == "missing_params";
    match invalid_field(&words) {
        Some(field) if validation => Fault::invalid(field, message).with_code(&code),
        _ => Fault::refused(&code, message),
    }
}

/// Returns the contract's field that a validation error refers to.
fn invalid_field(words: &str) -> Option<&'static str> {
    let known = [
        ("email", "email"),
        ("amount", "amount"),
        ("currency", "currency"),
        ("channel", "channels"),
        ("channels", "channels"),
    ];
    words
        .split(|c: char| !c.is_alphanumeric())
        .find_map(|word| known.iter().find(|(theirs, _)| *theirs == word))
        .map(|(_, ours)| *ours)
}
