//! A window of the latest outcomes, which distinguishes an outage from a few failures.

use tollhouse_platform::clock::Timestamp;

/// Window length and failure threshold, in calls.
const LOOKED_AT: u32 = 20;
const TOO_MANY: u32 = 16;
/// Time between two calls after which the window is cleared.
const GAP_MS: i64 = 60_000;

#[derive(Clone, Copy, Debug, Default)]
pub struct Recent {
    /// One bit per outcome, 1 for a failure. The lowest bit is the latest.
    bad: u32,
    latest: Timestamp,
}

impl Recent {
    pub fn note(&mut self, is_bad: bool, now: Timestamp) {
        if now.0 - self.latest.0 > GAP_MS {
            self.bad = 0;
        }
        self.latest = now;
        self.bad = (self.bad << 1 | u32::from(is_bad)) & ((1 << LOOKED_AT) - 1);
    }

    /// Returns whether the failures reach the threshold.
    #[must_use]
    pub fn are_most(&self) -> bool {
        self.bad.count_ones() >= TOO_MANY
    }

    #[must_use]
    pub fn latest(&self) -> Timestamp {
        self.latest
    }

    #[must_use]
    pub fn are_none(&self) -> bool {
        self.bad == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(outcomes: &[bool], every_ms: i64) -> Recent {
        let mut recent = Recent::default();
        for (n, is_bad) in (1..).zip(outcomes) {
            recent.note(*is_bad, Timestamp(n * every_ms));
        }
        recent
    }

    #[test]
    fn sixteen_failures_of_twenty_reach_the_threshold() {
        assert!(!of(&[true; 15], 1).are_most());
        assert!(of(&[true; 16], 1).are_most());
        let mixed: Vec<bool> = (0..40).map(|n| n % 5 != 0).collect();
        assert!(of(&mixed, 1).are_most(), "four of five");
        let mixed: Vec<bool> = (0..40).map(|n| n % 4 != 0).collect();
        assert!(!of(&mixed, 1).are_most(), "three of four");
    }

    #[test]
    fn failures_more_than_a_minute_apart_do_not_add_up() {
        assert!(of(&[true; 40], GAP_MS).are_most());
        assert!(!of(&[true; 40], GAP_MS + 1).are_most());
        assert!(of(&[false; 20], 1).are_none());
    }
}
