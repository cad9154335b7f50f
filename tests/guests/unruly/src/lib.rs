//! A provider that misbehaves on demand, to test the host's limits. The setting `mood`, or else
//! `order.narration`, selects the misbehaviour by a word and its argument. An unknown word starts a
//! valid payment.

mod abuse;
mod egress;
mod nondeterminism;
mod reach;

use serde_json::json;
use tollhouse_plugin::checkout::{self, CheckoutOrder, CheckoutSession};
use tollhouse_plugin::http::{self, Request};
use tollhouse_plugin::notifications::{self, Notification, Refusal, Subject};
use tollhouse_plugin::payments::{Payment, PaymentStatus};
use tollhouse_plugin::types::{Fault, Money};
use tollhouse_plugin::{cache, log, settings, vault, verification};

/// The plugin.
#[derive(Debug)]
pub struct Unruly;

tollhouse_plugin::export!(Unruly: checkout, verification, notifications);

const SECRET: &str = "secret_key";

/// The visible result of a misbehaviour: the session's URL (empty for the default) and `raw`.
struct Outcome {
    url: String,
    raw: String,
}

impl Outcome {
    fn raw(raw: impl Into<String>) -> Result<Outcome, Fault> {
        Ok(Outcome { url: String::new(), raw: raw.into() })
    }
}

impl checkout::Guest for Unruly {
    fn start(order: CheckoutOrder) -> Result<CheckoutSession, Fault> {
        let Outcome { url, raw } = match mood() {
            Some(mood) => misbehave(&mood, &order)?,
            None => misbehave(&order.narration, &order)?,
        };
        let url = if url.is_empty() { settings::url("base_url", "/ok")? } else { url };
        let service_ref = match mood().as_deref() {
            Some("rename") => format!("renamed-{}", order.service_ref),
            _ => order.service_ref,
        };
        Ok(CheckoutSession { url, service_ref, raw })
    }
}

/// Returns the misbehaviour for every call, regardless of its arguments.
fn mood() -> Option<String> {
    settings::get("mood").filter(|mood| !mood.is_empty())
}

fn misbehave(command: &str, order: &CheckoutOrder) -> Result<Outcome, Fault> {
    let (word, rest) = command.split_once(' ').unwrap_or((command, ""));
    match word {
        "loop" => abuse::run_forever(),
        "grow" => abuse::grow(),
        "recurse" => Outcome::raw(abuse::recurse(0).to_string()),
        "panic" => panic!("told to"),
        "big" => Outcome::raw(abuse::large_json(number(rest))),
        "print" => abuse::print(number(rest)),
        "sleep" => abuse::sleep(number(rest)),
        "host-random" => Outcome::raw(abuse::draw(number(rest)).to_string()),
        "host-loop-random" => abuse::read_random_forever(number(rest)),
        "host-loop-hmac" => abuse::sign_forever(number(rest)),
        "host-loop-log" => abuse::log_forever(number(rest)),
        "random-request" => nondeterminism::random_request(),
        "fetch" => egress::fetch(rest),
        "many" => egress::send_many(number(rest)),
        "headers" => egress::send_headers(number(rest)),
        "leak" => abuse::leak(number(rest)),
        "hold" => abuse::call_while_holding(number(rest)),
        "say" => egress::send_verbatim(rest),
        "wait" => egress::call_slow_upstream(),
        "echo-secret" => egress::echo_secret(),
        "send-secret" => egress::send_secret(rest, order),
        "transform" => egress::send_transformed(),
        "jwt" => egress::send_jwt(),
        "reject" => Err(rejection(rest)),
        "log-secret" => log_secret(),
        "concatenate" => egress::send_concatenated_json(&order.narration),
        "gossip" => {
            let name = order.customer_name.as_deref().unwrap_or("somebody");
            Err(Fault::refused("", format!("{name} has no account")))
        }
        "cached" => cached(),
        "env" => Outcome::raw(reach::probe_environment().to_string()),
        _ => Outcome::raw("{}"),
    }
}

fn number(text: &str) -> u64 {
    text.trim().parse().unwrap_or(1)
}

/// Returns the fault for `CATEGORY CAUSE LIMIT`, with a message that no client may see.
fn rejection(words: &str) -> Fault {
    let mut words = words.split(' ');
    let mut next = || words.next().unwrap_or_default();
    let fault = match next() {
        "refused" => Fault::refused("", "a message for operators"),
        _ => Fault::invalid("amount", "a message for operators"),
    };
    let fault = fault.with_cause(next());
    match next() {
        "" => fault,
        limit => fault.with_limit(number(limit)),
    }
}

fn log_secret() -> Result<Outcome, Fault> {
    let placeholder = vault::secret(SECRET)?;
    log::info(&format!("the secret is {placeholder}"));
    Outcome::raw("{}")
}

/// Returns the cached value as a JSON string or null, then caches another.
fn cached() -> Result<Outcome, Fault> {
    let before = cache::get("k");
    cache::put("k", "put earlier", 60);
    Outcome::raw(json!(before).to_string())
}

impl verification::Guest for Unruly {
    fn verify(service_ref: String) -> Result<Payment, Fault> {
        let path = format!("/verify/{}", http::encode(&service_ref));
        let response = Request::get(settings::url("base_url", &path)?).send()?;
        let status = match mood().as_deref() {
            Some("credulous") => PaymentStatus::Success,
            Some("hasty") if response.status != 200 => return Err(Fault::not_found("no 200")),
            _ => PaymentStatus::Pending,
        };
        Ok(Payment {
            status,
            service_ref,
            transaction_id: String::new(),
            amount: Money { minor: 0, currency: "NGN".into() },
            requested: None,
            fees_minor: None,
            channel: "card".into(),
            paid_at: None,
            message: String::new(),
            instrument: None,
            challenge_url: None,
            metadata: None,
            raw: response.text(),
        })
    }
}

impl notifications::Guest for Unruly {
    /// Accepts every webhook, and takes the whole body for a reference.
    fn parse(_: Vec<(String, String)>, body: Vec<u8>) -> Result<Vec<Notification>, Refusal> {
        assert!(body != b"panic", "told to");
        Ok(vec![Notification {
            subject: Subject::Payment,
            event: "anything".into(),
            service_ref: String::from_utf8_lossy(&body).into_owned(),
            transaction_id: String::new(),
        }])
    }
}

#[cfg(test)]
mod tests;
