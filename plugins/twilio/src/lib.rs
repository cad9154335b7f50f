//! Twilio: text messages.
//!
//! A message resource may be created and still have failed. Messages have no idempotency key: a
//! message sent twice arrives twice.

mod refusal;

use serde::Deserialize;
use tollhouse_plugin::http::{self, Request, Response};
use tollhouse_plugin::sms::{self, TextMessage};
use tollhouse_plugin::types::Fault;
use tollhouse_plugin::{settings, vault};

const TIMEOUT_MS: u32 = 10_000;

/// The plugin.
#[derive(Debug)]
pub struct Twilio;

tollhouse_plugin::export!(Twilio: sms);

/// A message resource or an error.
#[derive(Deserialize)]
struct SendResponse {
    #[serde(default)]
    sid: Option<String>,
    /// Status of a message; in an error, the HTTP status.
    #[serde(default)]
    status: serde_json::Value,
    /// Only in a message.
    #[serde(default)]
    error_code: Option<u64>,
    /// Only in an error.
    #[serde(default)]
    code: Option<u64>,
}

impl sms::Guest for Twilio {
    fn send(message: TextMessage) -> Result<String, Fault> {
        let account = http::encode(&settings::required("account_sid")?);
        let path = format!("/2010-04-01/Accounts/{account}/Messages.json");
        let sender = match message.sender {
            sender if sender.is_empty() => settings::required("sender")?,
            sender => sender,
        };
        let by = if is_messaging_service(&sender) { "MessagingServiceSid" } else { "From" };
        let response = Request::post(settings::url("base_url", &path)?)
            .basic(&vault::basic("account_sid", "auth_token")?)
            .form(&[("To", &*message.to), (by, &*sender), ("Body", &*message.text)])
            .timeout_ms(TIMEOUT_MS)
            .send()?;
        refusal::check_service(response.status)?;
        message_id(&response)
    }
}

/// Returns whether the sender is a messaging service, which chooses among its numbers.
fn is_messaging_service(sender: &str) -> bool {
    let digits = sender.strip_prefix("MG");
    digits.is_some_and(|rest| rest.len() == 32 && rest.bytes().all(|b| b.is_ascii_hexdigit()))
}

/// Returns the id of a message that was created and did not fail immediately.
fn message_id(response: &Response) -> Result<String, Fault> {
    let value: SendResponse = response.json()?;
    if let Some(code) = value.error_code.or(value.code) {
        return Err(refusal::fault(code));
    }
    let failed = ["failed", "undelivered", "canceled"];
    if value.status.as_str().is_some_and(|status| failed.contains(&status)) {
        return Err(Fault::unavailable("Twilio created the message but did not send it")
            .with_code("not-sent"));
    }
    let sid = value.sid.filter(|sid| response.is_success() && !sid.is_empty());
    sid.ok_or_else(|| {
        Fault::unavailable(format!("Twilio returned {} without a message id", response.status))
            .with_code("unexpected-answer")
    })
}

#[cfg(test)]
mod tests;
