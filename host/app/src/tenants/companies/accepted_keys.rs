//! Recently accepted API keys: their requests are not delayed by a flood with unknown keys.

use std::{
    collections::HashSet,
    sync::{PoisonError, RwLock},
};

use super::{digest, store::digests_used_since};
use crate::state::storage::*;
use tollhouse_platform::store::Store;

/// Period before the start of a host: keys used in it are loaded.
const RECENT_USE_SECONDS: i64 = 7 * 24 * 3600;
/// Maximum number of keys to load, most recently used first.
const MAX_LOADED_KEYS: i64 = 100_000;

/// Digests of accepted keys. Only valid keys are added, so issued keys bound the set.
#[derive(Default)]
pub struct AcceptedKeys(RwLock<HashSet<String>>);

impl AcceptedKeys {
    /// Loads the recently used valid keys, so that a host that starts during a flood knows them.
    pub async fn load(store: &Store, now: Timestamp) -> Result<AcceptedKeys> {
        let since = now.plus_seconds(-RECENT_USE_SECONDS);
        let used = async |tx: &mut Tx| digests_used_since(tx, since, now, MAX_LOADED_KEYS).await;
        let digests = store.select(used).await?;
        Ok(AcceptedKeys(RwLock::new(digests.into_iter().collect())))
    }

    /// Returns whether the key was accepted and has not been rejected since.
    pub fn contains(&self, key: &str) -> bool {
        self.contains_digest(&digest(key))
    }

    fn contains_digest(&self, digest: &str) -> bool {
        self.0.read().unwrap_or_else(PoisonError::into_inner).contains(digest)
    }

    pub(super) fn record(&self, digest: &str, accepted: bool) {
        if self.contains_digest(digest) == accepted {
            return;
        }
        let mut keys = self.0.write().unwrap_or_else(PoisonError::into_inner);
        match accepted {
            true => drop(keys.insert(digest.to_owned())),
            false => drop(keys.remove(digest)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_known_from_its_acceptance_to_its_refusal() {
        let keys = AcceptedKeys::default();
        let noted = |accepted| {
            keys.record(&digest("sk_test_1"), accepted);
            [keys.contains("sk_test_1"), keys.contains("sk_test_2")]
        };
        assert_eq!(noted(false), [false, false]);
        assert_eq!(noted(true), [true, false]);
        assert_eq!(noted(true), [true, false]);
        assert_eq!(noted(false), [false, false]);
    }
}
