//! Requests to Dojah: authentication, the envelope, and the mapping of errors to faults. Dojah's
//! messages are never forwarded.

use prembly::NO_CREDIT;
use serde_json::Value;
use tollhouse_plugin::http::{Request, Response, encode};
use tollhouse_plugin::record::Record;
use tollhouse_plugin::types::Fault;
use tollhouse_plugin::{settings, vault};

/// Sends a GET request and returns the envelope's `entity`.
pub(super) fn get(path: &str, query: &[(&str, &str)], timeout_ms: u32) -> Result<Value, Fault> {
    let query = query.iter().map(|(name, value)| format!("{name}={}", encode(value)));
    let url = format!("{}?{}", url(path)?, query.collect::<Vec<_>>().join("&"));
    send(Request::get(url), "", timeout_ms)
}

/// Sends a POST request and returns the envelope's `entity`. `image` names the field of the body
/// that has the image.
pub(super) fn post(path: &str, body: &Value, image: &str, timeout_ms: u32) -> Result<Value, Fault> {
    send(Request::post(url(path)?).json(body), image, timeout_ms)
}

/// Returns the record in the entity of a lookup. In the entity of a licence, the person is in an
/// inner object.
pub(super) fn record(entity: Value) -> Result<Record, Fault> {
    let record = Record::of(entity).map(|record| record.merged("personal_details"));
    record.ok_or_else(|| unexpected_response("Dojah's response has no record"))
}

pub(super) fn unexpected_response(what: &str) -> Fault {
    Fault::unavailable(what).with_code("unexpected-answer")
}

/// Returns the fault of an image on which nothing can be read.
pub(super) fn unreadable_image() -> Fault {
    Fault::invalid("image", "nothing can be read on the image")
}

fn url(path: &str) -> Result<String, Fault> {
    settings::url("dojah_url", &format!("/api/v1/{path}"))
}

fn send(request: Request, image: &str, timeout_ms: u32) -> Result<Value, Fault> {
    let response = request
        .header("authorization", vault::secret("dojah_key")?)
        .header("appid", settings::required("dojah_app_id")?)
        .timeout_ms(timeout_ms)
        .send()
        .map_err(no_response)?;
    check_service(response.status)?;
    entity(&response, !image.is_empty())
}

/// Replaces the host's message, which may contain the URL and thus an identifier.
fn no_response(fault: Fault) -> Fault {
    Fault { message: "no response from Dojah".to_owned(), details: Vec::new(), ..fault }
}

fn check_service(status: u16) -> Result<(), Fault> {
    let code = format!("http-{status}");
    match status {
        401 | 403 => Err(Fault::misconfigured("Dojah does not accept the key").with_code(&code)),
        402 | 424 => {
            Err(Fault::unavailable("the account at Dojah has no credit left").with_code(NO_CREDIT))
        }
        408 | 429 | 500.. => {
            Err(Fault::unavailable(format!("Dojah returned {status}")).with_code(&code))
        }
        _ => Ok(()),
    }
}

fn entity(response: &Response, with_image: bool) -> Result<Value, Fault> {
    let mut value: Value =
        response.json().map_err(|_| unexpected_response("Dojah's response is invalid"))?;
    let entity = value.get_mut("entity").map(Value::take);
    match (entity, value.get("error")) {
        (Some(entity), _) if response.is_success() && !entity.is_null() => Ok(entity),
        (_, Some(words)) => Err(refusal(response.status, words, with_image)),
        _ => Err(unexpected_response("Dojah's response has neither a record nor an error")),
    }
}

/// Maps an error. The order of the conditions matters: "Face not found" does not mean a missing
/// record.
fn refusal(status: u16, words: &Value, with_image: bool) -> Fault {
    let words = words.to_string().to_lowercase();
    let mentions = |any: &[&str]| any.iter().any(|word| words.contains(word));
    if with_image && mentions(&["face", "selfie", "image", "photo", "document"]) {
        unreadable_image()
    } else if status == 404 || mentions(&["not found", "no record"]) {
        Fault::not_found("the register has no such entry")
    } else if matches!(status, 400 | 422) {
        Fault::invalid("identifier", "Dojah rejected the identifier")
    } else {
        Fault::refused(&format!("http-{status}"), "Dojah refused the request")
    }
}
