//! Termii: text messages.
//!
//! There is no deduplication: a message sent twice arrives twice. Errors have no codes, only
//! messages, which may quote the number and are never forwarded.

mod gsm;
mod refusal;

use serde::Deserialize;
use serde_json::{Value, json};
use tollhouse_plugin::http::{Request, Response};
use tollhouse_plugin::sms::{self, TextMessage};
use tollhouse_plugin::types::Fault;
use tollhouse_plugin::{settings, vault};

const TIMEOUT_MS: u32 = 10_000;

/// The plugin.
#[derive(Debug)]
pub struct Termii;

tollhouse_plugin::export!(Termii: sms);

#[derive(Deserialize, Default)]
#[serde(default)]
struct SendResponse {
    code: Value,
    message: Value,
    message_id: Value,
    /// The id as a string: as a number it may exceed the precision of a float.
    message_id_str: Value,
}

impl sms::Guest for Termii {
    fn send(message: TextMessage) -> Result<String, Fault> {
        let response = Request::post(settings::url("base_url", "/sms/send")?)
            .json(&request(&message)?)
            .timeout_ms(TIMEOUT_MS)
            .send()?;
        refusal::check_service(response.status)?;
        message_id(&response)
    }
}

fn request(message: &TextMessage) -> Result<Value, Fault> {
    let sender = match &*message.sender {
        "" => settings::required("sender")?,
        sender => sender.to_owned(),
    };
    Ok(json!({
        "api_key": vault::secret("api_key")?,
        "to": message.to.trim_start_matches('+'),
        "from": sender,
        "sms": message.text,
        "type": if gsm::is_encodable(&message.text) { "plain" } else { "unicode" },
        "channel": settings::required("route")?,
    }))
}

/// Returns the id of an accepted message. Neither the HTTP status nor the code alone proves
/// acceptance.
fn message_id(response: &Response) -> Result<String, Fault> {
    let value: SendResponse = response.json()?;
    if !(response.is_success() && text(&value.code).eq_ignore_ascii_case("ok")) {
        return Err(refusal::fault(response.status, &text(&value.message)));
    }
    let ids = [text(&value.message_id_str), text(&value.message_id)];
    ids.into_iter().find(|id| !id.is_empty()).ok_or_else(|| {
        Fault::unavailable("Termii returned no message id").with_code("unexpected-answer")
    })
}

/// Returns a string (trimmed) or a number as text, and "" for any other type.
fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.trim().to_owned(),
        Value::Number(number) => number.to_string(),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests;
