//! Which plugins serve on this host now: one map that is swapped whole.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::{Plugin, versions::Share};
use crate::{clock::Timestamp, random::Random};

/// What serves under each name. A request that began on an old version ends on it.
#[derive(Clone, Default)]
pub struct Serving {
    pub plugins: BTreeMap<String, Served>,
    /// Names that an operator has taken out of service.
    pub deactivated: BTreeSet<String>,
}

/// The versions of one plugin that serve.
#[derive(Clone)]
pub struct Served {
    pub active: Arc<Plugin>,
    pub canary: Option<(Arc<Plugin>, Share)>,
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
