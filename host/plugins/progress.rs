//! How far a call has got, and what it took.

use std::time::Duration;

use super::heard::{Answered, Heard, Silence};

/// What a call took.
#[derive(Clone, Copy, Debug, Default)]
pub struct Usage {
    /// One, and one for each request.
    pub runs: u32,
    pub requests: usize,
    /// Processor time of all runs, and of what the host did between them.
    pub cpu: Duration,
    /// The most memory that an instance had at once.
    pub peak_bytes: usize,
}

/// How far a call has got.
#[derive(Default)]
pub struct Progress {
    pub used: Usage,
    /// Bytes of a request may have reached an upstream.
    pub sent: bool,
    /// One that may have changed something got no answer.
    pub unanswered: bool,
    pub timed_out: bool,
    /// The host has not asked, or has not asked on.
    pub retry_after_s: Option<u32>,
    /// It has not begun: there was no room for it.
    pub turned_away: bool,
    /// What it heard; none: nobody writes it down.
    pub heard: Option<Heard>,
}

impl Progress {
    pub fn heard(&mut self, what: impl FnOnce() -> Option<Result<Answered, Silence>>) {
        self.heard = self.heard.take().and_then(|heard| heard.and(what()));
    }
}
