//! Counts what each owner (a company or a client address) holds concurrently.

use std::{
    collections::HashMap,
    hash::Hash,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// Counts by owner. Cheap to clone; all clones share them.
pub struct Shares<K>(Arc<Mutex<HashMap<K, usize>>>);

impl<K> Clone for Shares<K> {
    fn clone(&self) -> Shares<K> {
        Shares(self.0.clone())
    }
}

impl<K> Default for Shares<K> {
    fn default() -> Shares<K> {
        Shares(Arc::default())
    }
}

/// One unit that an owner holds, released when dropped.
pub struct Share<K: Eq + Hash> {
    shares: Shares<K>,
    owner: K,
}

impl<K: Clone + Eq + Hash> Shares<K> {
    /// Takes a unit, unless the owner already holds `most`.
    #[must_use]
    pub fn take(&self, owner: K, most: usize) -> Option<Share<K>> {
        let mut counts = self.counts();
        let count = counts.get(&owner).copied().unwrap_or_default();
        if count >= most {
            return None;
        }
        counts.insert(owner.clone(), count + 1);
        Some(Share { shares: self.clone(), owner })
    }
}

impl<K> Shares<K> {
    fn counts(&self) -> MutexGuard<'_, HashMap<K, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Eq + Hash> Drop for Share<K> {
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
        let shares = Shares::default();
        let first = shares.take("a", 2).unwrap();
        let second = shares.take("a", 2).unwrap();
        assert!(shares.take("a", 2).is_none());
        let other = shares.take("b", 2).unwrap();
        drop(first);
        let third = shares.take("a", 2).unwrap();
        drop((second, third, other));
        assert!(shares.counts().is_empty());
    }
}
