//! Counts what each owner (a company or a client address) holds concurrently.

use std::{
    collections::HashMap,
    hash::Hash,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// Counts by owner. Cheap to clone; all clones share them.
pub struct OwnerLimiter<K>(Arc<Mutex<HashMap<K, usize>>>);

impl<K> Clone for OwnerLimiter<K> {
    fn clone(&self) -> OwnerLimiter<K> {
        OwnerLimiter(self.0.clone())
    }
}

impl<K> Default for OwnerLimiter<K> {
    fn default() -> OwnerLimiter<K> {
        OwnerLimiter(Arc::default())
    }
}

/// One unit that an owner holds, released when dropped.
pub struct OwnerPermit<K: Eq + Hash> {
    shares: OwnerLimiter<K>,
    owner: K,
}

impl<K: Clone + Eq + Hash> OwnerLimiter<K> {
    /// Takes a unit, unless the owner already holds `most`.
    #[must_use]
    pub fn try_acquire(&self, owner: K, most: usize) -> Option<OwnerPermit<K>> {
        let mut counts = self.counts();
        let count = counts.get(&owner).copied().unwrap_or_default();
        if count >= most {
            return None;
        }
        counts.insert(owner.clone(), count + 1);
        Some(OwnerPermit { shares: self.clone(), owner })
    }
}

impl<K> OwnerLimiter<K> {
    fn counts(&self) -> MutexGuard<'_, HashMap<K, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Eq + Hash> Drop for OwnerPermit<K> {
    fn drop(&mut self) {
        let mut counts = self.shares.counts();
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
        let shares = OwnerLimiter::default();
        let first = shares.try_acquire("a", 2).unwrap();
        let second = shares.try_acquire("a", 2).unwrap();
        assert!(shares.try_acquire("a", 2).is_none());
        let other = shares.try_acquire("b", 2).unwrap();
        drop(first);
        let third = shares.try_acquire("a", 2).unwrap();
        drop((second, third, other));
        assert!(shares.counts().is_empty());
    }
}
