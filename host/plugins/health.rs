//! Whether a version of a plugin is fit to be called: one that broke in nearly all of its latest calls is put into quarantine, until
//! an operator has looked.

use std::sync::{
    Mutex, PoisonError,
    atomic::{AtomicU8, Ordering},
};

use super::recent::Recent;
use crate::clock::Timestamp;

#[derive(Default)]
pub struct Health {
    broken: Mutex<Recent>,
    state: AtomicU8,
}

const FIT: u8 = 0;
/// Nobody but this process knows.
const FOUND_UNFIT: u8 = 1;
/// The registry knows.
const UNFIT: u8 = 2;

impl Health {
    #[must_use]
    pub fn is_fit(&self) -> bool {
        self.state.load(Ordering::Relaxed) == FIT
    }

    /// What became of a call. Answers whether it was the one too many.
    pub fn saw(&self, broke: bool, now: Timestamp) -> bool {
        let mut broken = self.broken.lock().unwrap_or_else(PoisonError::into_inner);
        broken.note(broke, now);
        let first = Ordering::Relaxed;
        broken.are_most() && self.state.compare_exchange(FIT, FOUND_UNFIT, first, first).is_ok()
    }

    /// Whether the registry does not know yet.
    #[must_use]
    pub fn is_news(&self) -> bool {
        self.state.load(Ordering::Relaxed) == FOUND_UNFIT
    }

    /// As the registry has it. What it does not know yet stays.
    pub fn follow(&self, is_quarantined: bool) {
        match (is_quarantined, self.state.load(Ordering::Relaxed)) {
            (true, _) => self.state.store(UNFIT, Ordering::Relaxed),
            (false, UNFIT) => {
                *self.broken.lock().unwrap_or_else(PoisonError::into_inner) = Recent::default();
                self.state.store(FIT, Ordering::Relaxed);
            }
            (false, _) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_storm_ends_in_quarantine_until_the_registry_says_otherwise() {
        let health = Health::default();
        let found = (0..40).filter(|n| health.saw(true, Timestamp(*n))).count();
        assert_eq!(found, 1, "it is said once");
        assert!(!health.is_fit() && health.is_news());
        health.follow(false);
        assert!(!health.is_fit(), "the registry does not know yet");
        health.follow(true);
        assert!(!health.is_fit() && !health.is_news());
        health.follow(false);
        assert!(health.is_fit());
        assert!(!health.saw(true, Timestamp(41)), "it begins anew");
    }
}
