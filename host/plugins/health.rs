//! Whether a version of a plugin is fit to be called. A company whose calls break it again and again is kept from it for a while;
//! when that happens to several, it is the plugin, which goes into quarantine until an operator has looked. So no single caller takes a plugin away
//! from the others.

use std::sync::atomic::{AtomicU8, Ordering};

use super::breaker::Breakers;
use crate::clock::Timestamp;

/// So many companies make a plugin's storm.
const COMPANIES: usize = 2;

#[derive(Default)]
pub struct Health {
    /// By company.
    storms: Breakers<String>,
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

    /// Whether it is fit, and no company's trouble.
    #[must_use]
    pub fn is_fit_for(&self, company: &str, now: Timestamp) -> bool {
        self.is_fit() && self.storms.rests_for(company, now).is_none()
    }

    /// Whether a company may call it, and whether that call finds out how it fares by now; else after how many seconds it is worth trying.
    /// What a stranger sends finds out nothing.
    pub fn admit(&self, company: &str, by_stranger: bool, now: Timestamp) -> Result<bool, u32> {
        match by_stranger {
            true => self.storms.rests_for(company, now).map_or(Ok(false), Err),
            false => self.storms.admit(company, now),
        }
    }

    /// What became of a company's call. Answers whether it was the one too many.
    pub fn saw(&self, company: &str, broke: bool, now: Timestamp) -> bool {
        self.storms.saw(company.to_owned(), !broke, now);
        let relaxed = Ordering::Relaxed;
        broke
            && self.storms.open(now) >= COMPANIES
            && self.state.compare_exchange(FIT, FOUND_UNFIT, relaxed, relaxed).is_ok()
    }

    /// The call that was to find out was not made: another does.
    pub fn was_not_tried(&self, company: &str, now: Timestamp) {
        self.storms.was_not_tried(company, now);
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

    /// How often a storm of this company was the one too many.
    fn storm(health: &Health, company: &str) -> usize {
        (0..20).filter(|_| health.saw(company, true, NOW)).count()
    }

    #[test]
    fn one_company_takes_a_plugin_from_nobody_else() {
        let health = Health::default();
        assert_eq!(storm(&health, "a"), 0);
        assert!(health.is_fit() && health.is_fit_for("b", NOW) && !health.is_fit_for("a", NOW));
        let rested = Timestamp(5_000);
        assert!(health.is_fit_for("a", rested), "it is tried again");
        assert_eq!(
            (health.admit("a", false, NOW), health.admit("b", false, NOW)),
            (Err(5), Ok(false))
        );
        assert_eq!(
            (health.admit("a", true, NOW), health.admit("b", true, NOW)),
            (Err(5), Ok(false))
        );
        assert_eq!(health.admit("a", true, rested), Ok(false), "a stranger's call is no probe");
        assert_eq!(health.admit("a", false, rested), Ok(true));
    }

    #[test]
    fn the_storm_of_several_is_quarantine_until_the_registry_says_otherwise() {
        let health = Health::default();
        assert_eq!((storm(&health, "a"), storm(&health, "b")), (0, 1), "it is said once");
        assert!(!health.is_fit() && health.is_news());
        health.follow(false);
        assert!(!health.is_fit(), "the registry does not know yet");
        health.follow(true);
        assert!(!health.is_fit() && !health.is_news());
        health.follow(false);
        assert!(health.is_fit_for("a", NOW), "it begins anew");
    }

    #[test]
    fn what_broke_hours_ago_makes_no_storm_of_several() {
        let health = Health::default();
        storm(&health, "a");
        let later = Timestamp(3_600_000);
        health.saw("b", true, NOW);
        let quarantines = (0..20).filter(|_| health.saw("b", true, later)).count();
        assert_eq!(quarantines, 0);
        assert!(health.is_fit() && !health.is_fit_for("b", later));
    }
}
