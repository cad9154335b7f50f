//! An SMS gateway. Faults and log lines never contain the number or the text.

use serde::Deserialize;
use serde_json::json;
use tollhouse_plugin::http::{Request, Response};
use tollhouse_plugin::sms::{self, TextMessage};
use tollhouse_plugin::types::Fault;
use tollhouse_plugin::{settings, vault};

#[cfg(test)]
mod tests;

/// Short, because a person waits for the message.
const TIMEOUT_MS: u32 = 10_000;

/// The plugin.
#[derive(Debug)]
pub struct Plugin;

tollhouse_plugin::export!(Plugin: sms);

#[derive(Deserialize)]
struct Taken {
    id: String,
    state: String,
}

/// An error from the gateway.
#[derive(Deserialize)]
struct Problem {
    code: String,
}

impl sms::Guest for Plugin {
    fn send(message: TextMessage) -> Result<String, Fault> {
        let sender = match message.sender.as_str() {
            "" => settings::get_or("sender", ""),
            sender => sender.to_owned(),
        };
        let body = json!({
            "to": message.to, "from": sender, "text": message.text, "reference": message.reference,
        });
        let response = Request::post(settings::url("base_url", "/messages")?)
            .bearer(&vault::secret("api_key")?)
            .timeout_ms(TIMEOUT_MS)
            .json(&body)
            .send()?;
        match response.status {
            200..300 => {}
            401 | 403 => return Err(Fault::misconfigured("the gateway does not accept the key")),
            400 | 402 | 422 => return Err(refusal(&response)),
            status => return Err(Fault::unavailable(format!("the gateway returned {status}"))),
        }
        // HTTP success does not mean that the recipient was accepted.
        match response.json()? {
            Taken { id, state } if state == "accepted" => Ok(id),
            _ => Err(Fault::other("the gateway did not accept the message")),
        }
    }
}

/// Uses the gateway's codes and not its messages, which may contain the number.
fn refusal(response: &Response) -> Fault {
    let code = match response.json::<Problem>() {
        Ok(Problem { code }) => code,
        Err(fault) => return fault,
    };
    match code.as_str() {
        "bad_number" => Fault::invalid("to", "the gateway rejected the number"),
        "opted_out" => Fault::refused("opted-out", "the recipient has opted out"),
        "bad_sender" => Fault::misconfigured("the gateway rejected the sender"),
        "no_credit" => Fault::unavailable("the account has no credit").with_code("no-credit"),
        _ => Fault::other("the gateway refused the message"),
    }
}
