//! Counts what each owner (a company or a client address) holds concurrently.

use std::{
    collections::HashMap,
    hash::Hash,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// Counts by owner, each at most `max`. Cheap to clone; all clones share the counts.
#[derive(Clone)]
pub struct OwnerLimiter<K> {
    counts: Arc<Mutex<HashMap<K, usize>>>,
    max: usize,
}

/// One unit that an owner holds, released when dropped.
pub struct OwnerPermit<K: Eq + Hash> {
    limiter: OwnerLimiter<K>,
    owner: K,
}

impl<K> OwnerLimiter<K> {
    #[must_use]
    pub fn new(max: usize) -> OwnerLimiter<K> {
        OwnerLimiter { counts: Arc::default(), max }
    }

    fn counts(&self) -> MutexGuard<'_, HashMap<K, usize>> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Clone + Eq + Hash> OwnerLimiter<K> {
    /// Takes a unit, unless the owner already holds the maximum.
    #[must_use]
    pub fn try_acquire(&self, owner: K) -> Option<OwnerPermit<K>> {
        let mut counts = self.counts();
        let count = counts.get(&owner).copied().unwrap_or_default();
        if count >= self.max {
            return None;
        }
        counts.insert(owner.clone(), count + 1);
        Some(OwnerPermit { limiter: self.clone(), owner })
    }
}

impl<K: Eq + Hash> Drop for OwnerPermit<K> {
    fn drop(&mut self) {
        let mut counts = self.limiter.counts();
        match counts.get_mut(&self.owner) {
            Some(count) if *count > 1 => *count -= 1,
            _ => drop(counts.remove(&self.owner)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owner_is_limited_and_removed_when_it_holds_none() {
        let shares = OwnerLimiter::new(2);
        let first = shares.try_acquire("a").unwrap();
        let second = shares.try_acquire("a").unwrap();
        assert!(shares.try_acquire("a").is_none());
        let other = shares.try_acquire("b").unwrap();
        drop(first);
        let third = shares.try_acquire("a").unwrap();
        drop((second, third, other));
        assert!(shares.counts().is_empty());
    }
}
