//! Limits what each owner (a company or a client address) holds concurrently.

use std::{
    collections::HashMap,
    hash::Hash,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
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

/// Returns on whose behalf the current task works. `None`: the host's own work, such as health
/// checks.
#[must_use]
pub fn current() -> Option<Owner> {
    CURRENT.try_with(Owner::clone).ok()
}

/// Permits by owner, at most `max` each. Cheap to clone; all clones share the permits.
#[derive(Clone)]
pub struct OwnerLimiter<K> {
    /// Those of which a permit is held or awaited.
    owners: Arc<Mutex<HashMap<K, Arc<Semaphore>>>>,
    max: usize,
}

/// A permit that an owner holds, released when dropped.
pub struct OwnerPermit<K: Eq + Hash> {
    limiter: OwnerLimiter<K>,
    owner: K,
    permit: Option<OwnedSemaphorePermit>,
}

impl<K> OwnerLimiter<K> {
    #[must_use]
    pub fn new(max: usize) -> OwnerLimiter<K> {
        OwnerLimiter { owners: Arc::default(), max }
    }

    fn owners(&self) -> MutexGuard<'_, HashMap<K, Arc<Semaphore>>> {
        self.owners.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Clone + Eq + Hash> OwnerLimiter<K> {
    /// Takes a permit, unless the owner already holds the maximum.
    #[must_use]
    pub fn try_acquire(&self, owner: K) -> Option<OwnerPermit<K>> {
        let permit = self.permits_of(&owner).try_acquire_owned().ok()?;
        Some(OwnerPermit { limiter: self.clone(), owner, permit: Some(permit) })
    }

    /// Takes a permit; waits while the owner holds the maximum.
    async fn acquire(&self, owner: K) -> OwnerPermit<K> {
        // The semaphores are never closed.
        let permit = self.permits_of(&owner).acquire_owned().await.ok();
        OwnerPermit { limiter: self.clone(), owner, permit }
    }

    fn permits_of(&self, owner: &K) -> Arc<Semaphore> {
        let mut owners = self.owners();
        if let Some(permits) = owners.get(owner) {
            return permits.clone();
        }
        let permits = Arc::new(Semaphore::new(self.max.min(Semaphore::MAX_PERMITS)));
        owners.insert(owner.clone(), permits.clone());
        permits
    }
}

impl OwnerLimiter<Owner> {
    /// Takes a permit of the owner on whose behalf the current task works. `None`: it works for the
    /// host, which has no limit.
    pub async fn acquire_current(&self) -> Option<OwnerPermit<Owner>> {
        match current() {
            Some(owner) => Some(self.acquire(owner).await),
            None => None,
        }
    }
}

impl<K: Eq + Hash> Drop for OwnerPermit<K> {
    fn drop(&mut self) {
        drop(self.permit.take());
        let mut owners = self.limiter.owners();
        // Whoever holds or awaits a permit holds a reference.
        if owners.get(&self.owner).is_some_and(|permits| Arc::strong_count(permits) == 1) {
            owners.remove(&self.owner);
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[test]
    fn an_owner_is_limited_and_removed_when_it_holds_none() {
        let limiter = OwnerLimiter::new(2);
        let first = limiter.try_acquire("a").unwrap();
        let second = limiter.try_acquire("a").unwrap();
        assert!(limiter.try_acquire("a").is_none());
        let other = limiter.try_acquire("b").unwrap();
        drop(first);
        let third = limiter.try_acquire("a").unwrap();
        drop((second, third, other));
        assert!(limiter.owners().is_empty());
    }

    #[test]
    fn an_owner_waits_for_its_own_permits_only() {
        let limiter = OwnerLimiter::new(1);
        let held = limiter.acquire("a").now_or_never().unwrap();
        let mut waiting = Box::pin(limiter.acquire("a"));
        assert!(waiting.as_mut().now_or_never().is_none());
        drop(limiter.acquire("b").now_or_never().unwrap());
        drop(held);
        drop(waiting.now_or_never().unwrap());
        assert!(limiter.owners().is_empty());
    }
}
