//! Transcripts: the external inputs of a call, with which it can be replayed.

use super::session::header_bytes;
use crate::prelude::*;

/// Maximum size of recorded responses. Calls with more are not recorded.
const MAX_BYTES: usize = 1 << 20;

/// The inputs of a call apart from its arguments and settings, in order.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Transcript {
    /// Responses to its requests.
    pub answers: Vec<Result<RecordedResponse, TransportError>>,
    /// Keys read from the cache, and their values.
    pub cached: Vec<(String, Option<String>)>,
    pub vouched: Vec<VaultResult>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedResponse {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: String,
}

/// The reason why a request got no response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TransportError {
    NoConnection,
    NoAnswer,
    Cut,
    TooLarge,
}

/// A vault result. `of` is the fingerprint of the data.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum VaultResult {
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

impl Transcript {
    /// Adds a response. Returns whether the transcript is small enough to be recorded.
    pub fn push_response(
        &mut self,
        response: Option<Result<RecordedResponse, TransportError>>,
    ) -> bool {
        self.answers.extend(response);
        let size =
            |response: &RecordedResponse| response.body.len() + header_bytes(&response.headers);
        self.answers.iter().flatten().map(size).sum::<usize>() <= MAX_BYTES
    }
}

impl From<&EgressResponse> for RecordedResponse {
    fn from(response: &EgressResponse) -> RecordedResponse {
        let EgressResponse { status, headers, body } = response;
        let body = String::from_utf8_lossy(body).into_owned();
        RecordedResponse { status: *status, headers: headers.clone(), body }
    }
}

impl TransportError {
    /// Returns `None` for a request that the host rejected, because a replay rejects it again.
    pub fn from_egress(error: &EgressError) -> Option<TransportError> {
        match error {
            EgressError::Forbidden(_) => None,
            EgressError::Connect(_) => Some(TransportError::NoConnection),
            EgressError::Timeout(_) => Some(TransportError::NoAnswer),
            EgressError::ConnectionLost(_) => Some(TransportError::Cut),
            EgressError::TooLarge(_) => Some(TransportError::TooLarge),
        }
    }

    pub fn to_egress(self, origin: &str) -> EgressError {
        let origin = origin.to_owned();
        match self {
            TransportError::NoConnection => EgressError::Connect(origin),
            TransportError::NoAnswer => EgressError::Timeout(origin),
            TransportError::Cut => EgressError::ConnectionLost(origin),
            TransportError::TooLarge => EgressError::TooLarge(origin),
        }
    }
}

/// A completed call for the recorder: not masked, but without secrets.
pub struct CompletedCall {
    pub plugin: PluginHandle,
    /// Empty for the service itself.
    pub company: Arc<str>,
    pub began: Timestamp,
    pub call: Call,
    pub settings: HashMap<String, String>,
    /// Names of the secrets that the account has.
    pub secrets: Vec<String>,
    pub transcript: Transcript,
    /// The outcome as named by metrics: `ok`, `refused`, `timed_out`.
    pub outcome: &'static str,
    /// One-word summary of the result, for example a payment's state; empty after a fault.
    pub summary: &'static str,
    /// The fault, if the call failed.
    pub fault: Option<Fault>,
}

/// Receives each call that may be recorded. Must not block.
pub type Recorder = Arc<dyn Fn(CompletedCall) + Send + Sync>;
