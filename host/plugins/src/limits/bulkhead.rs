//! Limits that all versions of one plugin share: calls, queue, instances, CPU permits and memory.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use tokio::sync::SemaphorePermit;

use super::{pace::Turns, places::Places};
use crate::runtime::engine::Limits;

/// Divisor of the host's instances for one plugin: half of them.
const SHARE: u32 = 2;

pub struct Bulkhead {
    calls: Counter,
    queue: Counter,
    instances: Places,
    pub turns: Turns,
    /// Memory of all calls together, in bytes.
    pub memory: Arc<MemoryBudget>,
}

struct Counter {
    now: AtomicUsize,
    most: usize,
}

/// A permit, released on drop.
pub struct Place<'b>(&'b Counter);

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.now.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Counter {
    fn new(most: usize) -> Counter {
        Counter { now: AtomicUsize::new(0), most }
    }

    fn enter(&self) -> Option<Place<'_>> {
        let place = self.now.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |now| {
            (now < self.most).then_some(now + 1)
        });
        place.ok().map(|_| Place(self))
    }
}

impl Bulkhead {
    pub fn new(limits: &Limits) -> Bulkhead {
        let instances = limits.instances.div_ceil(SHARE);
        Bulkhead {
            calls: Counter::new(limits.calls),
            queue: Counter::new(limits.queue),
            instances: Places::new(instances as usize),
            turns: Turns::default(),
            memory: Arc::new(MemoryBudget::new(limits.plugin_memory_bytes)),
        }
    }

    /// Counts a call until the permit is dropped. `None`: too many calls are in flight.
    pub fn begin(&self) -> Option<Place<'_>> {
        self.calls.enter()
    }

    /// Acquires an instance permit. New calls wait in the queue; `None` if it is full. Calls in
    /// progress are not rejected, because their outcome would be unknown.
    pub async fn instance(&self, has_begun: bool) -> Option<SemaphorePermit<'_>> {
        if let Some(place) = self.instances.take_free() {
            return Some(place);
        }
        let _waits = if has_begun { None } else { Some(self.queue.enter()?) };
        self.instances.take(has_begun).await
    }
}

/// Memory shared by all calls of a plugin: instances, requests and responses.
pub struct MemoryBudget {
    used: AtomicUsize,
    most: usize,
}

impl MemoryBudget {
    pub fn new(most: usize) -> MemoryBudget {
        MemoryBudget { used: AtomicUsize::new(0), most }
    }

    /// Reserves memory. Returns `false` if not enough is available.
    pub fn take(&self, bytes: usize) -> bool {
        let taken = self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
            used.checked_add(bytes).filter(|sum| *sum <= self.most)
        });
        taken.is_ok()
    }

    /// Returns whether the request could ever be granted.
    pub fn holds(&self, bytes: usize) -> bool {
        bytes <= self.most
    }

    pub fn give_back(&self, bytes: usize) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// A memory reservation, released on drop.
pub struct Held {
    budget: Arc<MemoryBudget>,
    bytes: usize,
}

impl Held {
    pub fn of(budget: &Arc<MemoryBudget>) -> Held {
        Held { budget: budget.clone(), bytes: 0 }
    }

    /// Extends the reservation. Returns `false` if not enough is available.
    pub fn take(&mut self, bytes: usize) -> bool {
        let taken = self.budget.take(bytes);
        self.bytes += if taken { bytes } else { 0 };
        taken
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.budget.give_back(self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    fn bulkhead() -> Bulkhead {
        Bulkhead::new(&Limits { instances: 2, calls: 3, queue: 1, ..Limits::default() })
    }

    #[test]
    fn calls_beyond_the_limit_are_rejected_until_one_ends() {
        let bulkhead = bulkhead();
        let mut calls: Vec<_> = (0..3).map(|_| bulkhead.begin()).collect();
        assert!(calls.iter().all(Option::is_some) && bulkhead.begin().is_none());
        calls.pop();
        assert!(bulkhead.begin().is_some());
    }

    #[test]
    fn a_full_queue_rejects_new_calls_but_not_calls_in_progress() {
        let bulkhead = bulkhead();
        let running = bulkhead.instance(false).now_or_never().unwrap();
        assert!(running.is_some(), "half of two instances");
        let mut waits = Box::pin(bulkhead.instance(false));
        assert!(waits.as_mut().now_or_never().is_none());
        assert!(bulkhead.instance(false).now_or_never().unwrap().is_none(), "the queue is full");
        assert!(bulkhead.instance(true).now_or_never().is_none(), "it skips the queue");
        drop(running);
        assert!(waits.now_or_never().unwrap().is_some());
    }

    #[test]
    fn memory_is_reserved_up_to_the_limit_and_released() {
        let budget = MemoryBudget::new(10);
        assert!(budget.take(6) && !budget.take(5) && budget.take(4));
        assert!(!budget.take(usize::MAX));
        budget.give_back(10);
        assert!(budget.take(10) && budget.holds(10) && !budget.holds(11));
    }

    #[test]
    fn a_dropped_reservation_is_released() {
        let budget = Arc::new(MemoryBudget::new(10));
        let mut held = Held::of(&budget);
        assert!(held.take(6) && !held.take(5) && held.take(4));
        drop(held);
        assert!(budget.take(10));
    }
}
