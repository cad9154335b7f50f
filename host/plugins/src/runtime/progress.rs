//! Progress and resource usage of a call.

use std::{sync::Arc, time::Duration};

use super::transcript::{RecordedResponse, Transcript, TransportError};
use crate::limits::cpu::CpuMeter;

/// Resource usage of a call.
#[derive(Clone, Copy, Debug, Default)]
pub struct Usage {
    /// One, plus one per request and per retry for lack of memory.
    pub runs: u32,
    pub requests: usize,
    /// CPU time of the guest, and of the host on its behalf.
    pub cpu: Duration,
    /// Peak memory of an instance.
    pub peak_bytes: usize,
}

#[derive(Default)]
pub struct Progress {
    pub usage: Usage,
    /// Measures `usage.cpu`, which is set when the call ends.
    pub cpu: Arc<CpuMeter>,
    /// A request may have reached an upstream.
    pub sent: bool,
    /// A request that may change something got no response.
    pub unanswered: bool,
    pub timed_out: bool,
    /// Seconds until a retry; set if the host rejected the call or a request.
    pub retry_after_s: Option<u32>,
    /// The call was rejected before it began.
    pub rejected: bool,
    /// The transcript; `None` if the call is not recorded.
    pub transcript: Option<Transcript>,
}

impl Progress {
    pub fn record_response(
        &mut self,
        response: impl FnOnce() -> Option<Result<RecordedResponse, TransportError>>,
    ) {
        self.transcript.take_if(|transcript| !transcript.push_response(response()));
    }
}
