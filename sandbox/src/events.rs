//! The receiver of Tollhouse's own events (Standard Webhooks): stores them and verifies their
//! signatures.

use std::{
    collections::{HashMap, VecDeque},
    sync::Mutex,
};

use axum::http::HeaderMap;
use base64::{Engine, prelude::BASE64_STANDARD};
use hmac::{Hmac, KeyInit, Mac};
use serde::Serialize;
use serde_json::Value;
use sha2::Sha256;
use tollhouse_platform::clock::Timestamp;

use crate::locked;

const MAX_EVENTS: usize = 1_000;
/// Maximum difference between an event's timestamp and the current time.
const TOLERANCE_SECONDS: i64 = 300;

/// The result of verifying an event's `webhook-signature`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum SignatureStatus {
    Valid,
    Invalid,
    /// No secret is registered for the company in the body.
    Unknown,
}

/// A received delivery attempt.
#[derive(Clone, Debug, Serialize)]
pub struct ReceivedEvent {
    /// The `webhook-id` header, the same in all attempts.
    pub id: String,
    /// The body's `event`.
    pub event: String,
    pub signature: SignatureStatus,
    /// The body as received.
    pub body: String,
    pub at: Timestamp,
    #[serde(skip)]
    pub headers: Vec<(String, String)>,
}

#[derive(Default)]
pub(crate) struct EventReceiver {
    received: Mutex<VecDeque<ReceivedEvent>>,
    secrets: Mutex<HashMap<String, String>>,
}

impl EventReceiver {
    pub(crate) fn set_secret(&self, company_id: &str, secret: &str) {
        locked(&self.secrets).insert(company_id.to_owned(), secret.to_owned());
    }

    pub(crate) fn list(&self) -> Vec<ReceivedEvent> {
        locked(&self.received).iter().cloned().collect()
    }

    pub(crate) fn receive(&self, headers: &HeaderMap, body: String, now: Timestamp) {
        let json: Value = serde_json::from_str(&body).unwrap_or_default();
        let company = json["company_id"].as_str().unwrap_or_default();
        let secret = locked(&self.secrets).get(company).cloned();
        let signature = match secret {
            None => SignatureStatus::Unknown,
            Some(secret) if has_valid_signature(headers, &body, &secret, now) => {
                SignatureStatus::Valid
            }
            Some(_) => SignatureStatus::Invalid,
        };
        let event = ReceivedEvent {
            id: header_text(headers, "webhook-id").to_owned(),
            event: json["event"].as_str().unwrap_or_default().to_owned(),
            signature,
            at: now,
            headers: headers
                .iter()
                .map(|(name, value)| {
                    (name.to_string(), String::from_utf8_lossy(value.as_bytes()).into_owned())
                })
                .collect(),
            body,
        };
        let mut received = locked(&self.received);
        received.push_front(event);
        received.truncate(MAX_EVENTS);
    }
}

fn header_text<'a>(headers: &'a HeaderMap, name: &str) -> &'a str {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

fn has_valid_signature(headers: &HeaderMap, body: &str, secret: &str, now: Timestamp) -> bool {
    let (id, timestamp) =
        (header_text(headers, "webhook-id"), header_text(headers, "webhook-timestamp"));
    let Ok(seconds) = timestamp.parse::<i64>() else { return false };
    if (now.unix_seconds() - seconds).abs() > TOLERANCE_SECONDS {
        return false;
    }
    let Some(key) = secret.strip_prefix("whsec_").and_then(|key| BASE64_STANDARD.decode(key).ok())
    else {
        return false;
    };
    let mac = Hmac::<Sha256>::new_from_slice(&key)
        .expect("an HMAC key may have any length")
        .chain_update(format!("{id}.{timestamp}.{body}"));
    header_text(headers, "webhook-signature")
        .split(' ')
        .filter_map(|part| part.strip_prefix("v1,"))
        .filter_map(|signature| BASE64_STANDARD.decode(signature).ok())
        .any(|signature| mac.clone().verify_slice(&signature).is_ok())
}
