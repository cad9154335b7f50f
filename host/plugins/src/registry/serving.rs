//! The versions that serve on this host, in one map that is replaced as a whole.

use super::versions::CanaryShare;
use crate::limits::bulkhead::Bulkhead;
use crate::prelude::*;

/// Serving versions by plugin. A request ends on the version on which it began.
#[derive(Clone, Default)]
pub struct ServingPlugins {
    pub plugins: BTreeMap<String, ServingVersions>,
    /// Installed plugins that do not serve.
    pub unavailable: BTreeMap<String, Unavailability>,
}

/// The reason why an installed plugin does not serve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unavailability {
    /// Deactivated by an operator.
    Deactivated,
    /// Active, but not loaded on this host.
    NotReady,
}

/// Seconds in which most components compile.
const NOT_READY_RETRY_S: u32 = 5;

impl Unavailability {
    /// Returns the error for clients.
    pub fn to_error(self, name: &str) -> Error {
        match self {
            Unavailability::Deactivated => Error::Invalid(format!("{name} has been deactivated")),
            Unavailability::NotReady => Error::RetryLater {
                message: format!("{name} is unavailable, please try again later"),
                detail: "it is active, but not loaded on this host yet".to_owned(),
                retry_after_s: NOT_READY_RETRY_S,
            },
        }
    }
}

/// The serving versions of a plugin, and the limits that they share.
#[derive(Clone)]
pub struct ServingVersions {
    pub active: Arc<Plugin>,
    pub canary: Option<(Arc<Plugin>, CanaryShare)>,
    pub bulkhead: Arc<Bulkhead>,
}

impl ServingVersions {
    /// Chooses the version for a company's call.
    pub fn choose(&self, company: &str, random: &Random, now: Timestamp) -> Arc<Plugin> {
        match &self.canary {
            Some((canary, share))
                if canary.health.is_healthy_for(company, now)
                    && share.includes(company, random) =>
            {
                canary.clone()
            }
            _ => self.active.clone(),
        }
    }

    pub fn versions(&self) -> impl Iterator<Item = &Arc<Plugin>> {
        std::iter::once(&self.active).chain(self.canary.iter().map(|(canary, _)| canary))
    }
}

/// Versions chosen within one operation, by plugin and company. The first choice stays, so that
/// manifest and calls are of one version.
#[derive(Clone, Default)]
pub struct PinnedVersions(Arc<Mutex<HashMap<(String, String), PluginHandle>>>);

impl PinnedVersions {
    /// Returns the earlier choice, else that of `choose`, which is kept if it is `Some`.
    pub fn get_or_pin(
        &self,
        name: &str,
        company: &str,
        choose: impl FnOnce() -> Option<PluginHandle>,
    ) -> Option<PluginHandle> {
        let mut choices = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (name.to_owned(), company.to_owned());
        if let Some(earlier) = choices.get(&key) {
            return Some(earlier.clone());
        }
        let chosen = choose()?;
        choices.insert(key, chosen.clone());
        Some(chosen)
    }
}

impl CanaryShare {
    fn includes(&self, company: &str, random: &Random) -> bool {
        self.companies.iter().any(|named| named == company)
            || self.percent > 0 && random.up_to(99) < self.percent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_takes_its_percentage_and_all_calls_of_named_companies() {
        let random = Random::seeded(1);
        let taken = |percent: i64, companies: &[&str], company: &str| {
            let companies = companies.iter().map(|name| (*name).to_owned()).collect();
            let share = CanaryShare { percent, companies };
            (0..1_000).filter(|_| share.includes(company, &random)).count()
        };
        assert_eq!(taken(0, &[], "a"), 0);
        assert_eq!(taken(100, &[], "a"), 1_000);
        assert_eq!(taken(0, &["b", "a"], "a"), 1_000);
        assert_eq!(taken(0, &["b"], "a"), 0);
        let some = taken(20, &["b"], "a");
        assert!((140..260).contains(&some), "{some}");
    }
}
