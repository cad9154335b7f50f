//! What came of the latest calls: enough to tell a storm from a bad moment.

use crate::clock::Timestamp;

/// So many are looked at, of which so many are too many.
const LOOKED_AT: u32 = 20;
const TOO_MANY: u32 = 16;
/// What is further apart than this is not one storm.
const GAP_MS: i64 = 60_000;

#[derive(Clone, Copy, Debug, Default)]
pub struct Recent {
    /// The latest is the lowest bit; 1: bad.
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

    /// Of the latest, nearly all were bad.
    #[must_use]
    pub fn are_most(&self) -> bool {
        self.bad.count_ones() >= TOO_MANY
    }

    /// When the latest was.
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
    fn nearly_all_of_the_latest_must_be_bad() {
        assert!(!of(&[true; 15], 1).are_most());
        assert!(of(&[true; 16], 1).are_most());
        let mixed: Vec<bool> = (0..40).map(|n| n % 5 != 0).collect();
        assert!(of(&mixed, 1).are_most(), "four of five");
        let mixed: Vec<bool> = (0..40).map(|n| n % 4 != 0).collect();
        assert!(!of(&mixed, 1).are_most(), "three of four");
    }

    #[test]
    fn what_is_far_apart_is_no_storm() {
        assert!(of(&[true; 40], GAP_MS).are_most());
        assert!(!of(&[true; 40], GAP_MS + 1).are_most());
        assert!(of(&[false; 20], 1).are_none());
    }
}
