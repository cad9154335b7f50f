//! Limits that all versions of one plugin share: calls, queue, instances, CPU permits and memory.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use tokio::sync::SemaphorePermit;

use super::{cpu_throttle::CpuPermits, priority_semaphore::PrioritySemaphore};
use crate::runtime::engine::Limits;

/// Divisor of the host's instances for one plugin: half of them.
const INSTANCE_SHARE_DIVISOR: u32 = 2;

pub struct Bulkhead {
    calls: CallLimit,
    queue: CallLimit,
    instances: PrioritySemaphore,
    pub cpu_permits: CpuPermits,
    /// Memory of all calls together, in bytes.
    pub memory: Arc<MemoryBudget>,
}

struct CallLimit {
    in_flight: AtomicUsize,
    most: usize,
}

/// A permit, released on drop.
pub struct CallPermit<'b>(&'b CallLimit);

impl Drop for CallPermit<'_> {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}

impl CallLimit {
    fn new(most: usize) -> CallLimit {
        CallLimit { in_flight: AtomicUsize::new(0), most }
    }

    fn try_acquire(&self) -> Option<CallPermit<'_>> {
        let place = self.in_flight.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |now| {
            (now < self.most).then_some(now + 1)
        });
        place.ok().map(|_| CallPermit(self))
    }
}

impl Bulkhead {
    pub fn new(limits: &Limits) -> Bulkhead {
        let instances = limits.instances.div_ceil(INSTANCE_SHARE_DIVISOR);
        Bulkhead {
            calls: CallLimit::new(limits.calls),
            queue: CallLimit::new(limits.queue),
            instances: PrioritySemaphore::new(instances as usize),
            cpu_permits: CpuPermits::default(),
            memory: Arc::new(MemoryBudget::new(limits.plugin_memory_bytes)),
        }
    }

    /// Counts a call until the permit is dropped. `None`: too many calls are in flight.
    pub fn try_begin_call(&self) -> Option<CallPermit<'_>> {
        self.calls.try_acquire()
    }

    /// Acquires an instance permit. New calls wait in the queue; `None` if it is full. Calls in
    /// progress are not rejected, because their outcome would be unknown.
    pub async fn acquire_instance(&self, in_progress: bool) -> Option<SemaphorePermit<'_>> {
        if let Some(place) = self.instances.try_acquire() {
            return Some(place);
        }
        let _waits = if in_progress { None } else { Some(self.queue.try_acquire()?) };
        self.instances.acquire(in_progress).await
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
    pub fn try_reserve(&self, bytes: usize) -> bool {
        let taken = self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
            used.checked_add(bytes).filter(|sum| *sum <= self.most)
        });
        taken.is_ok()
    }

    /// Returns whether the request could ever be granted.
    pub fn could_ever_grant(&self, bytes: usize) -> bool {
        bytes <= self.most
    }

    pub fn release(&self, bytes: usize) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// A memory reservation, released on drop.
pub struct MemoryReservation {
    budget: Arc<MemoryBudget>,
    bytes: usize,
}

impl MemoryReservation {
    pub fn empty(budget: &Arc<MemoryBudget>) -> MemoryReservation {
        MemoryReservation { budget: budget.clone(), bytes: 0 }
    }

    /// Extends the reservation. Returns `false` if not enough is available.
    pub fn try_extend(&mut self, bytes: usize) -> bool {
        let taken = self.budget.try_reserve(bytes);
        self.bytes += if taken { bytes } else { 0 };
        taken
    }
}

impl Drop for MemoryReservation {
    fn drop(&mut self) {
        self.budget.release(self.bytes);
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
        let mut calls: Vec<_> = (0..3).map(|_| bulkhead.try_begin_call()).collect();
        assert!(calls.iter().all(Option::is_some) && bulkhead.try_begin_call().is_none());
        calls.pop();
        assert!(bulkhead.try_begin_call().is_some());
    }

    #[test]
    fn a_full_queue_rejects_new_calls_but_not_calls_in_progress() {
        let bulkhead = bulkhead();
        let running = bulkhead.acquire_instance(false).now_or_never().unwrap();
        assert!(running.is_some(), "half of two instances");
        let mut waits = Box::pin(bulkhead.acquire_instance(false));
        assert!(waits.as_mut().now_or_never().is_none());
        assert!(
            bulkhead.acquire_instance(false).now_or_never().unwrap().is_none(),
            "the queue is full"
        );
        assert!(bulkhead.acquire_instance(true).now_or_never().is_none(), "it skips the queue");
        drop(running);
        assert!(waits.now_or_never().unwrap().is_some());
    }

    #[test]
    fn memory_is_reserved_up_to_the_limit_and_released() {
        let budget = MemoryBudget::new(10);
        assert!(budget.try_reserve(6) && !budget.try_reserve(5) && budget.try_reserve(4));
        assert!(!budget.try_reserve(usize::MAX));
        budget.release(10);
        assert!(
            budget.try_reserve(10) && budget.could_ever_grant(10) && !budget.could_ever_grant(11)
        );
    }

    #[test]
    fn a_dropped_reservation_is_released() {
        let budget = Arc::new(MemoryBudget::new(10));
        let mut held = MemoryReservation::empty(&budget);
        assert!(held.try_extend(6) && !held.try_extend(5) && held.try_extend(4));
        drop(held);
        assert!(budget.try_reserve(10));
    }
}
