//! Which plugins serve on this host now: one map that is swapped whole.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use super::{Callable, Plugin, bulkhead::Bulkhead, versions::Share};
use crate::{clock::Timestamp, error::Error, random::Random};

/// What serves under each name. A request that began on an old version ends on it.
#[derive(Clone, Default)]
pub struct Serving {
    pub plugins: BTreeMap<String, Served>,
    /// Names under which nothing serves, though something is installed.
    pub absent: BTreeMap<String, Absence>,
}

/// Why nothing serves under a name that is installed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Absence {
    /// An operator has taken it out of service.
    Deactivated,
    /// It serves elsewhere, and this host has not got it ready.
    NotReady,
}

/// In seconds: as long as most components are compiled.
const READY_SOON: u32 = 5;

impl Absence {
    /// What callers hear who ask for it.
    #[must_use]
    pub fn of(self, name: &str) -> Error {
        match self {
            Absence::Deactivated => Error::Invalid(format!("{name} has been deactivated")),
            Absence::NotReady => Error::Busy {
                message: format!("{name} is unavailable, please try again later"),
                detail: "it serves elsewhere, and is not ready here".to_owned(),
                retry_after_s: READY_SOON,
            },
        }
    }
}

/// The versions of one plugin that serve, and what they may have at once, all together.
#[derive(Clone)]
pub struct Served {
    pub active: Arc<Plugin>,
    pub canary: Option<(Arc<Plugin>, Share)>,
    pub bulkhead: Arc<Bulkhead>,
}

impl Served {
    /// The version that serves a company now.
    pub fn choose(&self, company: &str, random: &Random, now: Timestamp) -> Arc<Plugin> {
        match &self.canary {
            Some((canary, share))
                if canary.health.is_fit_for(company, now) && share.takes(company, random) =>
            {
                canary.clone()
            }
            _ => self.active.clone(),
        }
    }

    /// All that serve.
    pub fn versions(&self) -> impl Iterator<Item = &Arc<Plugin>> {
        std::iter::once(&self.active).chain(self.canary.iter().map(|(canary, _)| canary))
    }
}

/// The versions chosen within one operation, by plugin and company. The first choice stays, so that manifest and calls are of one
/// version even if a canary shares the calls or another version is activated meanwhile.
#[derive(Clone, Default)]
pub struct Choices(Arc<Mutex<Vec<Choice>>>);

struct Choice {
    name: String,
    company: String,
    chosen: Callable,
}

impl Choices {
    /// Returns the earlier choice; else that of `choose`, which is kept unless it is `None`.
    pub fn keep(
        &self,
        name: &str,
        company: &str,
        choose: impl FnOnce() -> Option<Callable>,
    ) -> Option<Callable> {
        let mut choices = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(earlier) =
            choices.iter().find(|choice| choice.name == name && choice.company == company)
        {
            return Some(earlier.chosen.clone());
        }
        let chosen = choose()?;
        let (name, company) = (name.to_owned(), company.to_owned());
        choices.push(Choice { name, company, chosen: chosen.clone() });
        Some(chosen)
    }
}

impl Share {
    fn takes(&self, company: &str, random: &Random) -> bool {
        self.companies.iter().any(|named| named == company)
            || self.percent > 0 && random.up_to(99) < i64::from(self.percent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_so_much_of_all_and_all_of_some() {
        let random = Random::seeded(1);
        let taken = |percent: u8, companies: &[&str], company: &str| {
            let companies = companies.iter().map(|name| (*name).to_owned()).collect();
            let share = Share { percent, companies };
            (0..1_000).filter(|_| share.takes(company, &random)).count()
        };
        assert_eq!(taken(0, &[], "a"), 0);
        assert_eq!(taken(100, &[], "a"), 1_000);
        assert_eq!(taken(0, &["b", "a"], "a"), 1_000);
        assert_eq!(taken(0, &["b"], "a"), 0);
        let some = taken(20, &["b"], "a");
        assert!((140..260).contains(&some), "{some}");
    }
}
