//! Limits what each owner (a company or a client address) holds concurrently.

use std::{
    collections::HashMap,
    hash::Hash,
    sync::{Arc, Mutex, PoisonError},
};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::values::id::Owner;

tokio::task_local! {
    static CURRENT: Owner;
}

/// Runs `work` on behalf of an owner, whose share of the database it uses.
pub async fn on_behalf_of<F: Future>(owner: Owner, work: F) -> F::Output {
    CURRENT.scope(owner, work).await
}

/// Returns the owner on whose behalf the current task works. `None`: the host's own work, such as
/// health checks.
#[must_use]
pub fn current() -> Option<Owner> {
    CURRENT.try_with(Owner::clone).ok()
}

/// Number of owners beyond which a map is searched for unused values.
const SWEEP_AT: usize = 1_024;

/// A value per owner. Unused values are removed when the map grows. Cheap to clone; all clones
/// share the values.
pub struct OwnerMap<K, V>(Arc<Mutex<Values<K, V>>>);

struct Values<K, V> {
    by_owner: HashMap<K, Arc<V>>,
    sweep_at: usize,
}

impl<K, V> Clone for OwnerMap<K, V> {
    fn clone(&self) -> OwnerMap<K, V> {
        OwnerMap(self.0.clone())
    }
}

impl<K, V> Default for OwnerMap<K, V> {
    fn default() -> OwnerMap<K, V> {
        let values = Values { by_owner: HashMap::new(), sweep_at: SWEEP_AT };
        OwnerMap(Arc::new(Mutex::new(values)))
    }
}

impl<K: Clone + Eq + Hash, V> OwnerMap<K, V> {
    /// Returns the value of an owner, and creates it if there is none.
    pub fn get_or_create(&self, owner: &K, create: impl FnOnce() -> V) -> Arc<V> {
        let mut values = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(value) = values.by_owner.get(owner) {
            return value.clone();
        }
        if values.by_owner.len() >= values.sweep_at {
            values.by_owner.retain(|_, value| Arc::strong_count(value) > 1);
            values.sweep_at = SWEEP_AT.max(values.by_owner.len() * 2);
        }
        let value = Arc::new(create());
        values.by_owner.insert(owner.clone(), value.clone());
        value
    }
}

/// Permits by owner, at most `max` each. Cheap to clone; all clones share the permits.
#[derive(Clone)]
pub struct OwnerLimiter<K> {
    permits: OwnerMap<K, Semaphore>,
    max: usize,
}

impl<K: Clone + Eq + Hash> OwnerLimiter<K> {
    #[must_use]
    pub fn new(max: usize) -> OwnerLimiter<K> {
        OwnerLimiter { permits: OwnerMap::default(), max: max.min(Semaphore::MAX_PERMITS) }
    }

    /// Takes a permit, unless the owner already holds the maximum.
    #[must_use]
    pub fn try_acquire(&self, owner: &K) -> Option<OwnedSemaphorePermit> {
        self.permits_of(owner).try_acquire_owned().ok()
    }

    /// Takes a permit; waits while the owner holds the maximum.
    async fn acquire(&self, owner: &K) -> Option<OwnedSemaphorePermit> {
        // The semaphores are never closed.
        self.permits_of(owner).acquire_owned().await.ok()
    }

    fn permits_of(&self, owner: &K) -> Arc<Semaphore> {
        self.permits.get_or_create(owner, || Semaphore::new(self.max))
    }
}

impl OwnerLimiter<Owner> {
    /// Takes a permit of the owner on whose behalf the current task works. `None`: it works for the
    /// host, which has no limit.
    pub async fn acquire_current(&self) -> Option<OwnedSemaphorePermit> {
        self.acquire(&current()?).await
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[test]
    fn an_owner_is_limited_by_itself() {
        let limiter = OwnerLimiter::new(2);
        let held = [limiter.try_acquire(&"a"), limiter.try_acquire(&"a")];
        assert!(held.iter().all(Option::is_some) && limiter.try_acquire(&"a").is_none());
        assert!(limiter.try_acquire(&"b").is_some());
        drop(held);
        assert!(limiter.try_acquire(&"a").is_some());
    }

    #[test]
    fn an_owner_waits_for_its_own_permits_only() {
        let limiter = OwnerLimiter::new(1);
        let held = limiter.acquire(&"a").now_or_never().unwrap();
        let mut waiting = Box::pin(limiter.acquire(&"a"));
        assert!(waiting.as_mut().now_or_never().is_none());
        drop(limiter.acquire(&"b").now_or_never().unwrap());
        drop(held);
        assert!(waiting.now_or_never().is_some());
    }

    #[test]
    fn values_in_use_remain_when_many_others_are_removed() {
        let owners = OwnerMap::default();
        let used: Vec<_> = (0..10).map(|n| owners.get_or_create(&n, || n)).collect();
        for n in 0..100_000 {
            owners.get_or_create(&n, || n);
        }
        assert!(used.iter().enumerate().all(|(n, value)| {
            Arc::ptr_eq(value, &owners.get_or_create(&n, || unreachable!("it is in use")))
        }));
        assert!(owners.0.lock().unwrap().by_owner.len() <= SWEEP_AT);
    }
}
