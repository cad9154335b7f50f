//! What one plugin may have at once, all its versions together: calls, places in the queue, instances, turns in the slow lane and memory.
//! What it uses up is its own.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use tokio::sync::SemaphorePermit;

use super::{engine::Limits, pace::Turns, places::Places};

/// The share of one plugin in a host's instances.
const SHARE: u32 = 2;

pub struct Bulkhead {
    calls: Counter,
    queue: Counter,
    instances: Places,
    pub turns: Turns,
    /// Of all calls together, in bytes.
    pub memory: Arc<MemoryBudget>,
}

/// So many at most.
struct Counter {
    now: AtomicUsize,
    most: usize,
}

/// Something that is counted while this is held.
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

    /// A call is under way until this is dropped. `None`: there are too many.
    pub fn begin(&self) -> Option<Place<'_>> {
        self.calls.enter()
    }

    /// A place among the instances; what waits at the beginning of a call waits in the queue, `None` when that is full. Calls that
    /// have begun are not turned away: it would be unknown what they have done.
    pub async fn instance(&self, has_begun: bool) -> Option<SemaphorePermit<'_>> {
        if let Some(place) = self.instances.take_free() {
            return Some(place);
        }
        let _waits = if has_begun { None } else { Some(self.queue.enter()?) };
        self.instances.take(has_begun).await
    }
}

/// Memory that all calls of a plugin share: of their instances, and of what they have heard.
pub struct MemoryBudget {
    used: AtomicUsize,
    most: usize,
}

impl MemoryBudget {
    pub fn new(most: usize) -> MemoryBudget {
        MemoryBudget { used: AtomicUsize::new(0), most }
    }

    /// Whether there was so much; then it is taken.
    pub fn take(&self, bytes: usize) -> bool {
        let taken = self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
            used.checked_add(bytes).filter(|sum| *sum <= self.most)
        });
        taken.is_ok()
    }

    /// Whether there is so much when nobody else has any.
    pub fn holds(&self, bytes: usize) -> bool {
        bytes <= self.most
    }

    pub fn give_back(&self, bytes: usize) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// A part of a budget, given back when this is dropped.
pub struct Held {
    budget: Arc<MemoryBudget>,
    bytes: usize,
}

impl Held {
    pub fn of(budget: &Arc<MemoryBudget>) -> Held {
        Held { budget: budget.clone(), bytes: 0 }
    }

    /// So much more, if there is so much.
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
    fn calls_are_counted_while_they_last() {
        let bulkhead = bulkhead();
        let mut calls: Vec<_> = (0..3).map(|_| bulkhead.begin()).collect();
        assert!(calls.iter().all(Option::is_some) && bulkhead.begin().is_none());
        calls.pop();
        assert!(bulkhead.begin().is_some());
    }

    #[test]
    fn the_queue_has_an_end_for_those_who_have_not_begun() {
        let bulkhead = bulkhead();
        let running = bulkhead.instance(false).now_or_never().unwrap();
        assert!(running.is_some(), "half of two");
        let mut waits = Box::pin(bulkhead.instance(false));
        assert!(waits.as_mut().now_or_never().is_none());
        assert!(bulkhead.instance(false).now_or_never().unwrap().is_none(), "the queue is full");
        assert!(bulkhead.instance(true).now_or_never().is_none(), "it waits, queue or not");
        drop(running);
        assert!(waits.now_or_never().unwrap().is_some());
    }

    #[test]
    fn memory_is_taken_and_given_back() {
        let budget = MemoryBudget::new(10);
        assert!(budget.take(6) && !budget.take(5) && budget.take(4));
        assert!(!budget.take(usize::MAX));
        budget.give_back(10);
        assert!(budget.take(10) && budget.holds(10) && !budget.holds(11));
    }

    #[test]
    fn what_is_held_is_given_back() {
        let budget = Arc::new(MemoryBudget::new(10));
        let mut held = Held::of(&budget);
        assert!(held.take(6) && !held.take(5) && held.take(4));
        drop(held);
        assert!(budget.take(10));
    }
}
