//! Africa's Talking: text messages.
//!
//! HTTP success only means that the request was read; each recipient has a status of its own. There
//! is no deduplication: a message sent twice arrives twice.

use serde::Deserialize;
use serde_json::Value;
use tollhouse_plugin::http::{Request, Response};
use tollhouse_plugin::sms::{self, TextMessage};
use tollhouse_plugin::types::Fault;
use tollhouse_plugin::{settings, vault};

const TIMEOUT_MS: u32 = 10_000;

/// The plugin.
#[derive(Debug)]
pub struct AfricasTalking;

tollhouse_plugin::export!(AfricasTalking: sms);

#[derive(Deserialize)]
struct SendResponse {
    #[serde(rename = "SMSMessageData")]
    data: Data,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Data {
    #[serde(default)]
    message: Value,
    #[serde(default)]
    recipients: Vec<Recipient>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Recipient {
    status_code: Value,
    message_id: Value,
}

impl sms::Guest for AfricasTalking {
    fn send(message: TextMessage) -> Result<String, Fault> {
        let username = settings::required("username")?;
        let sender = match &*message.sender {
            "" => settings::get_or("sender", ""),
            sender => sender.to_owned(),
        };
        let mut form = vec![
            ("username", &*username),
            ("to", &*message.to),
            ("message", &*message.text),
            ("bulkSMSMode", "1"),
        ];
        if !sender.is_empty() {
            form.push(("from", &*sender));
        }
        let response = Request::post(settings::url("base_url", "/version1/messaging")?)
            .header("apiKey", vault::secret("api_key")?)
            .header("accept", "application/json")
            .form(&form)
            .timeout_ms(TIMEOUT_MS)
            .send()?;
        check_service(response.status)?;
        message_id(&response)
    }
}

/// Maps HTTP statuses other than success, whose bodies are plain text.
fn check_service(status: u16) -> Result<(), Fault> {
    let value = format!("Africa's Talking returned {status}");
    let fault = match status {
        200..300 => return Ok(()),
        401 | 403 => {
            Fault::misconfigured("Africa's Talking does not accept the username with the API key")
        }
        408 | 429 | 500.. => Fault::unavailable(value),
        400..500 => Fault::other(value),
        _ => return Err(Fault::unavailable(value).with_code("unexpected-answer")),
    };
    Err(fault.with_code(&format!("http-{status}")))
}

/// Returns the message id if the only recipient was accepted.
fn message_id(response: &Response) -> Result<String, Fault> {
    let SendResponse { data } = response.json()?;
    let Some(recipient) = data.recipients.first() else {
        return Err(no_recipient_fault(&data.message));
    };
    let Some(status) = number(&recipient.status_code) else { return Err(unexpected_response()) };
    match (status, recipient.message_id.as_str()) {
        (100..=102, None | Some("" | "None")) => Err(unexpected_response()),
        (100..=102, Some(id)) => Ok(id.to_owned()),
        _ => Err(status_fault(status)),
    }
}

/// Maps the message of a response without recipients to a fault.
fn no_recipient_fault(message: &Value) -> Fault {
    match message.as_str().unwrap_or_default() {
        "InvalidSenderId" => status_fault(402),
        "InvalidPhoneNumber" => status_fault(403),
        "InsufficientBalance" => status_fault(405),
        "UserInBlacklist" => status_fault(406),
        _ => Fault::unavailable("Africa's Talking accepted no recipient").with_code("no-recipient"),
    }
}

/// Maps a recipient's status other than success to a fault.
fn status_fault(status: u64) -> Fault {
    let code = &status.to_string();
    let fault = match status {
        401 => Fault::refused(code, "the message was held for risk review"),
        402 => Fault::misconfigured("the sender is not registered"),
        403 => Fault::invalid("to", "the number is not valid"),
        404 => Fault::invalid("to", "numbers of this type cannot receive messages"),
        405 => Fault::unavailable("the account has no credit left"),
        406 => Fault::refused(code, "the recipient has unsubscribed"),
        407 => Fault::unavailable("there is no route to the number's network"),
        409 => Fault::refused(code, "the recipient has opted out of such messages"),
        500..=502 => Fault::unavailable("the network's gateway is unavailable"),
        _ => Fault::other("the recipient has an unknown status"),
    };
    fault.with_code(code)
}

fn unexpected_response() -> Fault {
    Fault::unavailable("Africa's Talking did not report the status of the message")
        .with_code("unexpected-answer")
}

/// Parses a number, which may be a string.
fn number(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| value.as_str()?.trim().parse().ok())
}

#[cfg(test)]
mod tests;
