//! A window of the latest outcomes, which distinguishes an outage from a few failures.

use tollhouse_platform::clock::Timestamp;

/// Window length and failure threshold, in calls.
const WINDOW_CALLS: u32 = 20;
const FAILURE_THRESHOLD: u32 = 16;
/// Time between two calls after which the window is cleared.
const GAP_MS: i64 = 60_000;

#[derive(Clone, Copy, Debug, Default)]
pub struct OutcomeWindow {
    /// One bit per outcome, 1 for a failure. The lowest bit is the latest.
    failures: u32,
    latest: Timestamp,
}

impl OutcomeWindow {
    pub fn record(&mut self, failed: bool, now: Timestamp) {
        if now.0 - self.latest.0 > GAP_MS {
            self.failures = 0;
        }
        self.latest = now;
        self.failures = (self.failures << 1 | u32::from(failed)) & ((1 << WINDOW_CALLS) - 1);
    }

    /// Returns whether the failures reach the threshold.
    #[must_use]
    pub fn reaches_threshold(&self) -> bool {
        self.failures.count_ones() >= FAILURE_THRESHOLD
    }

    #[must_use]
    pub fn latest(&self) -> Timestamp {
        self.latest
    }

    #[must_use]
    pub fn has_no_failures(&self) -> bool {
        self.failures == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(outcomes: &[bool], every_ms: i64) -> OutcomeWindow {
        let mut recent = OutcomeWindow::default();
        for (n, is_bad) in (1..).zip(outcomes) {
            recent.record(*is_bad, Timestamp(n * every_ms));
        }
        recent
    }

    #[test]
    fn sixteen_failures_of_twenty_reach_the_threshold() {
        assert!(!of(&[true; 15], 1).reaches_threshold());
        assert!(of(&[true; 16], 1).reaches_threshold());
        let mixed: Vec<bool> = (0..40).map(|n| n % 5 != 0).collect();
        assert!(of(&mixed, 1).reaches_threshold(), "four of five");
        let mixed: Vec<bool> = (0..40).map(|n| n % 4 != 0).collect();
        assert!(!of(&mixed, 1).reaches_threshold(), "three of four");
    }

    #[test]
    fn failures_more_than_a_minute_apart_do_not_add_up() {
        assert!(of(&[true; 40], GAP_MS).reaches_threshold());
        assert!(!of(&[true; 40], GAP_MS + 1).reaches_threshold());
        assert!(of(&[false; 20], 1).has_no_failures());
    }
}
