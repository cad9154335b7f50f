//! What a call heard from outside, so that it can be made once more in a world that says the same.

use std::{collections::HashMap, sync::Arc};

use serde::{Deserialize, Serialize};

use super::{
    Call, Callable, Fault,
    session::{HttpResponse, length},
};
use crate::{clock::Timestamp, egress::EgressError};

/// Calls that heard more are not written down.
const MOST_BYTES: usize = 1 << 20;

/// What a plugin learnt during a call, beside its arguments and settings, in the order in which it asked.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Heard {
    /// What its requests were answered.
    pub answers: Vec<Result<Answered, Silence>>,
    /// Keys of the cache, and what they held.
    pub cached: Vec<(String, Option<String>)>,
    /// What the vault said of secrets.
    pub vouched: Vec<Vouched>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answered {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: String,
}

/// Why a request got no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Silence {
    NoConnection,
    NoAnswer,
    Cut,
    TooLarge,
}

/// What the vault said; `of` is the fingerprint of the data.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Vouched {
    /// The code in hexadecimal.
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
    /// One more; `None` when that is too much.
    pub fn and(mut self, answer: Option<Result<Answered, Silence>>) -> Option<Heard> {
        self.answers.extend(answer);
        let bytes = self.answers.iter().flatten().map(Answered::bytes).sum::<usize>();
        (bytes <= MOST_BYTES).then_some(self)
    }

    /// What the vault said to such a question when it was asked for the `n`th time, counted from 0.
    pub fn vouched(&self, is_it: impl Fn(&Vouched) -> bool, n: usize) -> Option<&Vouched> {
        self.vouched.iter().filter(|vouched| is_it(vouched)).nth(n)
    }

    /// What the cache held for a key when it was asked for the `n`th time, counted from 0; `None`: it was not asked so often.
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
    /// None where nothing was tried: the host itself says the same whenever it is asked.
    pub fn of(error: &EgressError) -> Option<Silence> {
        match error {
            EgressError::Forbidden(_) => None,
            EgressError::Connect(_) => Some(Silence::NoConnection),
            EgressError::Timeout(_) => Some(Silence::NoAnswer),
            EgressError::Cut(_) => Some(Silence::Cut),
            EgressError::TooLarge(_) => Some(Silence::TooLarge),
        }
    }

    /// The same towards an origin.
    #[must_use]
    pub fn of_origin(self, origin: &str) -> EgressError {
        let origin = origin.to_owned();
        match self {
            Silence::NoConnection => EgressError::Connect(origin),
            Silence::NoAnswer => EgressError::Timeout(origin),
            Silence::Cut => EgressError::Cut(origin),
            Silence::TooLarge => EgressError::TooLarge(origin),
        }
    }
}

/// A call that was made, for whoever writes calls down: with what people and providers said in it, and without secrets.
pub struct Recorded {
    /// The version that was called.
    pub plugin: Callable,
    /// Empty: the service itself.
    pub company: Arc<str>,
    pub began: Timestamp,
    pub call: Call,
    pub settings: HashMap<String, String>,
    /// The names of those that the account has.
    pub secrets: Vec<String>,
    pub heard: Heard,
    /// As metrics name it: `ok`, `refused`, `timed_out`.
    pub outcome: &'static str,
    /// What the plugin said, in a word: the state of a payment, say. Empty when it gave nothing.
    pub said: &'static str,
    /// Why it gave nothing, in the plugin's words.
    pub fault: Option<Fault>,
}

/// Hears of each call that may be written down, and keeps nobody waiting.
pub type Recorder = Arc<dyn Fn(Recorded) + Send + Sync>;
