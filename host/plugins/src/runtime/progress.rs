//! Progress and resource usage of a call.

use std::time::Duration;

use super::heard::{Answered, Heard, Silence};

/// Resource usage of a call.
#[derive(Clone, Copy, Debug, Default)]
pub struct Usage {
    /// One, plus one per request and per repetition for lack of memory.
    pub runs: u32,
    pub requests: usize,
    /// CPU time of all runs, and of the host between them.
    pub cpu: Duration,
    /// Peak memory of an instance.
    pub peak_bytes: usize,
}

#[derive(Default)]
pub struct Progress {
    pub used: Usage,
    /// A request may have reached an upstream.
    pub sent: bool,
    /// A request that may change something got no response.
    pub unanswered: bool,
    pub timed_out: bool,
    /// Seconds until a retry; set if the host rejected the call or a request.
    pub retry_after_s: Option<u32>,
    /// The call was rejected before it began.
    pub turned_away: bool,
    /// The transcript; `None` if the call is not recorded.
    pub heard: Option<Heard>,
}

impl Progress {
    pub fn heard(&mut self, what: impl FnOnce() -> Option<Result<Answered, Silence>>) {
        self.heard = self.heard.take().and_then(|heard| heard.and(what()));
    }
}
