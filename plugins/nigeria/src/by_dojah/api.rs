//! One call to Dojah: authentication, the envelope, and what its errors mean. None of its words are handed on.

use prembly::NO_CREDIT;
use serde_json::Value;
use tollhouse_plugin::http::{Request, Response, encode};
use tollhouse_plugin::record::Record;
use tollhouse_plugin::types::Fault;
use tollhouse_plugin::{settings, vault};

/// Asks; gives the envelope's `entity`.
pub(super) fn get(path: &str, query: &[(&str, &str)], timeout_ms: u32) -> Result<Value, Fault> {
    let query = query.iter().map(|(name, value)| format!("{name}={}", encode(value)));
    let url = format!("{}?{}", url(path)?, query.collect::<Vec<_>>().join("&"));
    send(Request::get(url), "", timeout_ms)
}

/// Sends an image in the field of this name; gives the envelope's `entity`.
pub(super) fn post(path: &str, body: &Value, image: &str, timeout_ms: u32) -> Result<Value, Fault> {
    send(Request::post(url(path)?).json(body), image, timeout_ms)
}

/// The entity of a lookup. That of a licence holds the person in an object of their own.
pub(super) fn record(entity: Value) -> Result<Record, Fault> {
    let record = Record::of(entity).map(|record| record.merged("personal_details"));
    record.ok_or_else(|| unexpected_response("Dojah's answer has no record"))
}

pub(super) fn unexpected_response(what: &str) -> Fault {
    Fault::unavailable(what).with_code("unexpected-answer")
}

/// The image holds nothing of what it was sent for.
pub(super) fn unreadable_image() -> Fault {
    Fault::invalid("image", "there is nothing to be read on the image")
}

fn url(path: &str) -> Result<String, Fault> {
    settings::url("dojah_url", &format!("/api/v1/{path}"))
}

fn send(request: Request, image: &str, timeout_ms: u32) -> Result<Value, Fault> {
    let answer = request
        .header("authorization", vault::secret("dojah_key")?)
        .header("appid", settings::required("dojah_app_id")?)
        .timeout_ms(timeout_ms)
        .send()
        .map_err(no_response)?;
    check_service(answer.status)?;
    entity(&answer, !image.is_empty())
}

/// The host's own words may hold the address, and that an identifier.
fn no_response(fault: Fault) -> Fault {
    Fault { message: "no answer came from Dojah".to_owned(), details: Vec::new(), ..fault }
}

fn check_service(status: u16) -> Result<(), Fault> {
    let code = format!("http-{status}");
    match status {
        401 | 403 => Err(Fault::misconfigured("Dojah does not accept the key").with_code(&code)),
        402 | 424 => {
            Err(Fault::unavailable("the account at Dojah has no credit left").with_code(NO_CREDIT))
        }
        408 | 429 | 500.. => {
            Err(Fault::unavailable(format!("Dojah says {status}")).with_code(&code))
        }
        _ => Ok(()),
    }
}

fn entity(answer: &Response, with_image: bool) -> Result<Value, Fault> {
    let mut told: Value =
        answer.json().map_err(|_| unexpected_response("Dojah's answer cannot be read"))?;
    let entity = told.get_mut("entity").map(Value::take);
    match (entity, told.get("error")) {
        (Some(entity), _) if answer.is_success() && !entity.is_null() => Ok(entity),
        (_, Some(words)) => Err(refusal(answer.status, words, with_image)),
        _ => Err(unexpected_response("Dojah's answer has neither a record nor an error")),
    }
}

/// In the order of the questions: "Face not found" is not about the record.
fn refusal(status: u16, words: &Value, with_image: bool) -> Fault {
    let words = words.to_string().to_lowercase();
    let says = |any: &[&str]| any.iter().any(|word| words.contains(word));
    if with_image && says(&["face", "selfie", "image", "photo", "document"]) {
        unreadable_image()
    } else if status == 404 || says(&["not found", "no record"]) {
        Fault::not_found("the register has no such entry")
    } else if matches!(status, 400 | 422) {
        Fault::invalid("identifier", "Dojah does not accept it")
    } else {
        Fault::refused(&format!("http-{status}"), "Dojah refused")
    }
}
