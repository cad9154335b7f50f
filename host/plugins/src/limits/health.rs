//! Health of a plugin version. Repeated failures of one company's calls block only that company;
//! those of two companies quarantine the version until an operator acts.

use std::sync::atomic::{AtomicU8, Ordering};

use super::breaker::CircuitBreakers;
use tollhouse_platform::clock::Timestamp;

/// Number of companies whose calls must fail before a plugin is quarantined.
const QUARANTINE_COMPANIES: usize = 2;

#[derive(Default)]
pub struct Health {
    /// Circuit breakers by company.
    pub breakers: CircuitBreakers,
    state: AtomicU8,
}

const HEALTHY: u8 = 0;
/// Quarantined by this process, not yet saved in the registry.
const QUARANTINE_UNSAVED: u8 = 1;
/// Quarantined in the registry.
const QUARANTINED: u8 = 2;

impl Health {
    pub fn is_healthy(&self) -> bool {
        self.state.load(Ordering::Relaxed) == HEALTHY
    }

    /// Returns whether the version is healthy and the company's circuit is not open.
    pub fn is_healthy_for(&self, company: &str, now: Timestamp) -> bool {
        self.is_healthy() && self.breakers.open_for(company, now).is_none()
    }

    /// Admits a call, as the half-open probe if `Ok(true)`; `Err`: seconds until a retry. Webhooks
    /// are never probes, because their senders are unauthenticated.
    pub fn admit(&self, company: &str, unauthenticated: bool, now: Timestamp) -> Result<bool, u32> {
        match unauthenticated {
            true => self.breakers.open_for(company, now).map_or(Ok(false), Err),
            false => self.breakers.admit(company, now),
        }
    }

    /// Records the outcome of a company's call. Returns whether it triggers quarantine.
    pub fn record(&self, company: &str, failed: bool, now: Timestamp) -> bool {
        self.breakers.record(company, !failed, now);
        let relaxed = Ordering::Relaxed;
        failed
            && self.breakers.open_count(now) >= QUARANTINE_COMPANIES
            && self.state.compare_exchange(HEALTHY, QUARANTINE_UNSAVED, relaxed, relaxed).is_ok()
    }

    /// Returns whether the registry does not have the quarantine yet.
    pub fn needs_saving(&self) -> bool {
        self.state.load(Ordering::Relaxed) == QUARANTINE_UNSAVED
    }

    /// Adopts the registry's state. A quarantine that is not saved yet stays.
    pub fn sync_quarantine(&self, is_quarantined: bool) {
        match (is_quarantined, self.state.load(Ordering::Relaxed)) {
            (true, _) => self.state.store(QUARANTINED, Ordering::Relaxed),
            (false, QUARANTINED) => {
                self.breakers.clear();
                self.state.store(HEALTHY, Ordering::Relaxed);
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
        (0..20).filter(|_| health.record(company, true, NOW)).count()
    }

    #[test]
    fn failures_of_one_company_do_not_block_the_plugin_for_others() {
        let health = Health::default();
        assert_eq!(storm(&health, "a"), 0);
        assert!(
            health.is_healthy()
                && health.is_healthy_for("b", NOW)
                && !health.is_healthy_for("a", NOW)
        );
        let rested = Timestamp(5_000);
        assert!(health.is_healthy_for("a", rested), "a probe is due");
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
        assert!(!health.is_healthy() && health.needs_saving());
        health.sync_quarantine(false);
        assert!(!health.is_healthy(), "not saved yet");
        health.sync_quarantine(true);
        assert!(!health.is_healthy() && !health.needs_saving());
        health.sync_quarantine(false);
        assert!(health.is_healthy_for("a", NOW), "failures are discarded");
    }

    #[test]
    fn failures_an_hour_apart_do_not_quarantine() {
        let health = Health::default();
        storm(&health, "a");
        let later = Timestamp(3_600_000);
        health.record("b", true, NOW);
        let quarantines = (0..20).filter(|_| health.record("b", true, later)).count();
        assert_eq!(quarantines, 0);
        assert!(health.is_healthy() && !health.is_healthy_for("b", later));
    }
}
