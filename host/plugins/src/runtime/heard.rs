//! Transcripts: the external inputs of a call, with which it can be replayed.

use std::{collections::HashMap, sync::Arc};

use serde::{Deserialize, Serialize};

use super::session::{HttpResponse, length};
use crate::{Call, Callable, Fault};
use tollhouse_platform::{clock::Timestamp, outbound::egress::EgressError};

/// Maximum size of recorded responses. Calls with more are not recorded.
const MOST_BYTES: usize = 1 << 20;

/// The inputs of a call apart from its arguments and settings, in order.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Heard {
    /// Responses to its requests.
    pub answers: Vec<Result<Answered, Silence>>,
    /// Keys read from the cache, and their values.
    pub cached: Vec<(String, Option<String>)>,
    pub vouched: Vec<Vouched>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answered {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: String,
}

/// The reason why a request got no response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Silence {
    NoConnection,
    NoAnswer,
    Cut,
    TooLarge,
}

/// A vault result. `of` is the fingerprint of the data.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Vouched {
    /// `mac` is in hexadecimal.
    Mac {
        algorithm: String,
        secret: String,
        of: String,
        mac: String,
    },
    Matches {
        secret: String,
        of: String,
        matches: bool,
    },
}

impl Heard {
    /// Adds a response. `None`: the transcript became too large.
    pub fn and(mut self, answer: Option<Result<Answered, Silence>>) -> Option<Heard> {
        self.answers.extend(answer);
        let bytes = self.answers.iter().flatten().map(Answered::bytes).sum::<usize>();
        (bytes <= MOST_BYTES).then_some(self)
    }

    /// Returns the `n`th matching vault result, counted from 0.
    pub fn vouched(&self, is_it: impl Fn(&Vouched) -> bool, n: usize) -> Option<&Vouched> {
        self.vouched.iter().filter(|vouched| is_it(vouched)).nth(n)
    }

    /// Returns the result of the `n`th read of a key, counted from 0; `None`: it was not read.
    pub fn cached(&self, key: &str, n: usize) -> Option<Option<String>> {
        let mut held = self.cached.iter().filter(|(asked, _)| asked == key).map(|(_, held)| held);
        held.nth(n).cloned()
    }
}

impl Answered {
    fn bytes(&self) -> usize {
        self.body.len() + length(&self.headers)
    }
}

impl From<&HttpResponse> for Answered {
    fn from(response: &HttpResponse) -> Answered {
        let HttpResponse { status, headers, body } = response;
        let body = String::from_utf8_lossy(body).into_owned();
        Answered { status: *status, headers: headers.clone(), body }
    }
}

impl Silence {
    /// Returns `None` for a request that the host rejected, because a replay rejects it again.
    pub fn of(error: &EgressError) -> Option<Silence> {
        match error {
            EgressError::Forbidden(_) => None,
            EgressError::Connect(_) => Some(Silence::NoConnection),
            EgressError::Timeout(_) => Some(Silence::NoAnswer),
            EgressError::ConnectionLost(_) => Some(Silence::Cut),
            EgressError::TooLarge(_) => Some(Silence::TooLarge),
        }
    }

    #[must_use]
    pub fn of_origin(self, origin: &str) -> EgressError {
        let origin = origin.to_owned();
        match self {
            Silence::NoConnection => EgressError::Connect(origin),
            Silence::NoAnswer => EgressError::Timeout(origin),
            Silence::Cut => EgressError::ConnectionLost(origin),
            Silence::TooLarge => EgressError::TooLarge(origin),
        }
    }
}

/// A completed call for the recorder: not masked, but without secrets.
pub struct Recorded {
    pub plugin: Callable,
    /// Empty for the service itself.
    pub company: Arc<str>,
    pub began: Timestamp,
    pub call: Call,
    pub settings: HashMap<String, String>,
    /// Names of the secrets that the account has.
    pub secrets: Vec<String>,
    pub heard: Heard,
    /// The outcome as named by metrics: `ok`, `refused`, `timed_out`.
    pub outcome: &'static str,
    /// One-word summary of the result, for example a payment's state; empty after a fault.
    pub said: &'static str,
    /// The fault, if the call failed.
    pub fault: Option<Fault>,
}

/// Receives each call that may be recorded. Must not block.
pub type Recorder = Arc<dyn Fn(Recorded) + Send + Sync>;
