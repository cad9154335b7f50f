//! Limits that all versions of one plugin share: calls, queue, instances, CPU permits and memory.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit};

use super::{cpu_throttle::CpuShare, priority_semaphore::PrioritySemaphore};
use crate::runtime::engine::Limits;

/// Divisor of the host's instances for one plugin: half of them.
const INSTANCE_SHARE_DIVISOR: u32 = 2;

pub struct Bulkhead {
    calls: Semaphore,
    /// New calls that wait for an instance.
    queue: Semaphore,
    instances: PrioritySemaphore,
    pub cpu: CpuShare,
    pub memory: MemoryBudget,
}

impl Bulkhead {
    pub fn new(limits: &Limits) -> Bulkhead {
        let instances = limits.instances.div_ceil(INSTANCE_SHARE_DIVISOR);
        Bulkhead {
            calls: Semaphore::new(limits.calls),
            queue: Semaphore::new(limits.queue),
            instances: PrioritySemaphore::new(instances as usize),
            cpu: CpuShare::default(),
            memory: MemoryBudget::new(limits.plugin_memory_bytes),
        }
    }

    /// Counts a call until the permit is dropped. `None`: too many calls are in flight.
    pub fn try_begin_call(&self) -> Option<SemaphorePermit<'_>> {
        self.calls.try_acquire().ok()
    }

    /// Acquires an instance permit. New calls wait in the queue; `None` if it is full. Calls in
    /// progress are not rejected, because their outcome would be unknown.
    pub async fn acquire_instance(&self, in_progress: bool) -> Option<SemaphorePermit<'_>> {
        if let Some(permit) = self.instances.try_acquire() {
            return Some(permit);
        }
        let _waits = if in_progress { None } else { Some(self.queue.try_acquire().ok()?) };
        self.instances.acquire(in_progress).await
    }
}

/// Memory shared by all calls of a plugin: instances, requests and responses.
#[derive(Clone)]
pub struct MemoryBudget {
    kib: Arc<Semaphore>,
    max_bytes: usize,
}

impl MemoryBudget {
    pub fn new(max_bytes: usize) -> MemoryBudget {
        let kib = Semaphore::new((max_bytes >> 10).min(Semaphore::MAX_PERMITS));
        MemoryBudget { kib: Arc::new(kib), max_bytes }
    }

    /// Reserves memory, in whole KiB, until the permit is dropped. `None`: not enough is available.
    pub fn try_reserve(&self, bytes: usize) -> Option<OwnedSemaphorePermit> {
        let kib = u32::try_from(bytes.div_ceil(1 << 10)).ok()?;
        self.kib.clone().try_acquire_many_owned(kib).ok()
    }

    /// Returns whether the request could ever be granted.
    pub fn could_ever_grant(&self, bytes: usize) -> bool {
        bytes <= self.max_bytes
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
        let budget = MemoryBudget::new(10 << 10);
        let held = [6 << 10, 5 << 10, 4 << 10].map(|bytes| budget.try_reserve(bytes));
        assert!(held[0].is_some() && held[1].is_none() && held[2].is_some());
        assert!(budget.try_reserve(1).is_none() && budget.try_reserve(usize::MAX).is_none());
        drop(held);
        assert!(budget.try_reserve(10 << 10).is_some());
        assert!(budget.could_ever_grant(10 << 10) && !budget.could_ever_grant((10 << 10) + 1));
    }
}
