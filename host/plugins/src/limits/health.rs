//! Health of a plugin version. Repeated failures of one company's calls block only that company;
//! those of two companies quarantine the version until an operator acts.

use std::sync::atomic::{AtomicU8, Ordering};

use super::breaker::Breakers;
use tollhouse_platform::clock::Timestamp;

/// Number of companies whose calls must fail before a plugin is quarantined.
const COMPANIES: usize = 2;

#[derive(Default)]
pub struct Health {
    /// Circuit breakers by company.
    storms: Breakers<String>,
    state: AtomicU8,
}

const FIT: u8 = 0;
/// Quarantined by this process, not yet saved in the registry.
const FOUND_UNFIT: u8 = 1;
/// Quarantined in the registry.
const UNFIT: u8 = 2;

impl Health {
    #[must_use]
    pub fn is_fit(&self) -> bool {
        self.state.load(Ordering::Relaxed) == FIT
    }

    /// Returns whether the version is healthy and the company's circuit is not open.
    #[must_use]
    pub fn is_fit_for(&self, company: &str, now: Timestamp) -> bool {
        self.is_fit() && self.storms.rests_for(company, now).is_none()
    }

    /// Admits a call, as the half-open probe if `Ok(true)`; `Err`: seconds until a retry. Webhooks
    /// are never probes, because their senders are unauthenticated.
    pub fn admit(&self, company: &str, by_stranger: bool, now: Timestamp) -> Result<bool, u32> {
        match by_stranger {
            true => self.storms.rests_for(company, now).map_or(Ok(false), Err),
            false => self.storms.admit(company, now),
        }
    }

    /// Records the outcome of a company's call. Returns whether it triggers quarantine.
    pub fn saw(&self, company: &str, broke: bool, now: Timestamp) -> bool {
        self.storms.saw(company.to_owned(), !broke, now);
        let relaxed = Ordering::Relaxed;
        broke
            && self.storms.open(now) >= COMPANIES
            && self.state.compare_exchange(FIT, FOUND_UNFIT, relaxed, relaxed).is_ok()
    }

    /// Releases an unused probe, so that the next call becomes the probe.
    pub fn was_not_tried(&self, company: &str, now: Timestamp) {
        self.storms.was_not_tried(company, now);
    }

    /// Returns whether the registry does not have the quarantine yet.
    #[must_use]
    pub fn is_news(&self) -> bool {
        self.state.load(Ordering::Relaxed) == FOUND_UNFIT
    }

    /// Adopts the registry's state. A quarantine that is not saved yet stays.
    pub fn follow(&self, is_quarantined: bool) {
        match (is_quarantined, self.state.load(Ordering::Relaxed)) {
            (true, _) => self.state.store(UNFIT, Ordering::Relaxed),
            (false, UNFIT) => {
                self.storms.forget();
                self.state.store(FIT, Ordering::Relaxed);
            }
            (false, _) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp(0);

    /// Records 20 failures of a company. Returns how many triggered quarantine.
    fn storm(health: &Health, company: &str) -> usize {
        (0..20).filter(|_| health.saw(company, true, NOW)).count()
    }

    #[test]
    fn failures_of_one_company_do_not_block_the_plugin_for_others() {
        let health = Health::default();
        assert_eq!(storm(&health, "a"), 0);
        assert!(health.is_fit() && health.is_fit_for("b", NOW) && !health.is_fit_for("a", NOW));
        let rested = Timestamp(5_000);
        assert!(health.is_fit_for("a", rested), "a probe is due");
        assert_eq!(
            (health.admit("a", false, NOW), health.admit("b", false, NOW)),
            (Err(5), Ok(false))
        );
        assert_eq!(
            (health.admit("a", true, NOW), health.admit("b", true, NOW)),
            (Err(5), Ok(false))
        );
        assert_eq!(health.admit("a", true, rested), Ok(false), "a webhook is not a probe");
        assert_eq!(health.admit("a", false, rested), Ok(true));
    }

    #[test]
    fn failures_of_two_companies_quarantine_until_the_registry_ends_it() {
        let health = Health::default();
        assert_eq!((storm(&health, "a"), storm(&health, "b")), (0, 1), "reported once");
        assert!(!health.is_fit() && health.is_news());
        health.follow(false);
        assert!(!health.is_fit(), "not saved yet");
        health.follow(true);
        assert!(!health.is_fit() && !health.is_news());
        health.follow(false);
        assert!(health.is_fit_for("a", NOW), "failures are discarded");
    }

    #[test]
    fn failures_an_hour_apart_do_not_quarantine() {
        let health = Health::default();
        storm(&health, "a");
        let later = Timestamp(3_600_000);
        health.saw("b", true, NOW);
        let quarantines = (0..20).filter(|_| health.saw("b", true, later)).count();
        assert_eq!(quarantines, 0);
        assert!(health.is_fit() && !health.is_fit_for("b", later));
    }
}
