//! Recently accepted API keys: their requests are not delayed by a flood with unknown keys.

use std::{
    collections::HashMap,
    sync::{PoisonError, RwLock},
};

use super::{digest, scopes::KeyLimits, store::digests_used_since};
use crate::state::storage::*;
use tollhouse_platform::store::Store;

/// A host loads the keys that were used in this period before its start.
const RECENT_USE_SECONDS: i64 = 7 * 24 * 3600;
/// Maximum number of keys to load, most recently used first.
const MAX_LOADED_KEYS: i64 = 100_000;

/// An API key that was accepted. A statement that uses it must check that the key is still valid.
#[derive(Clone, Debug)]
pub struct KnownKey {
    pub company_id: CompanyId,
    pub key_id: String,
    pub limits: KeyLimits,
}

/// Accepted keys by their digests. Only valid keys are added, so issued keys bound the map. The
/// value is absent for operator tokens, and for API keys that this host has not authenticated yet.
#[derive(Default)]
pub struct AcceptedKeys(RwLock<HashMap<String, Option<KnownKey>>>);

impl AcceptedKeys {
    /// Loads the recently used valid keys, so that a host that starts during a flood knows them.
    pub async fn load(store: &Store, now: Timestamp) -> Result<AcceptedKeys> {
        let since = now.plus_seconds(-RECENT_USE_SECONDS);
        let used = async |tx: &mut Tx| digests_used_since(tx, since, now, MAX_LOADED_KEYS).await;
        let digests = store.select(used).await?;
        let keys = digests.into_iter().map(|digest| (digest, None)).collect();
        Ok(AcceptedKeys(RwLock::new(keys)))
    }

    /// Returns whether the key was accepted and has not been rejected since.
    pub fn contains(&self, key: &str) -> bool {
        self.read(&digest(key), |_| ()).is_some()
    }

    /// Returns an accepted API key by its digest.
    pub(super) fn find(&self, digest: &str) -> Option<KnownKey> {
        self.read(digest, Clone::clone).flatten()
    }

    fn read<T>(&self, digest: &str, of: impl Fn(&Option<KnownKey>) -> T) -> Option<T> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).get(digest).map(of)
    }

    pub(super) fn accept(&self, digest: &str, key: Option<KnownKey>) {
        let is_recorded = self.read(digest, |known| known.is_some() || key.is_none());
        if is_recorded != Some(true) {
            let mut keys = self.0.write().unwrap_or_else(PoisonError::into_inner);
            keys.insert(digest.to_owned(), key);
        }
    }

    pub(super) fn reject(&self, digest: &str) {
        if self.read(digest, |_| ()).is_some() {
            self.0.write().unwrap_or_else(PoisonError::into_inner).remove(digest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_known_from_its_acceptance_to_its_rejection() {
        let keys = AcceptedKeys::default();
        let known = || [keys.contains("sk_test_1"), keys.contains("sk_test_2")];
        let key = KnownKey {
            company_id: CompanyId::from("c"),
            key_id: "k".to_owned(),
            limits: KeyLimits::default(),
        };
        keys.reject(&digest("sk_test_1"));
        assert_eq!(known(), [false, false]);
        keys.accept(&digest("sk_test_1"), None);
        assert_eq!(known(), [true, false]);
        assert!(keys.find(&digest("sk_test_1")).is_none());
        keys.accept(&digest("sk_test_1"), Some(key));
        keys.accept(&digest("sk_test_1"), None);
        assert_eq!(keys.find(&digest("sk_test_1")).expect("the key").key_id, "k");
        keys.reject(&digest("sk_test_1"));
        assert_eq!(known(), [false, false]);
    }
}
