//! Limits that all versions of one plugin share: calls, queue, instances, CPU permits and memory.
//! One company gets at most half of each, and takes turns with the others on processors.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tollhouse_platform::limits::owner::OwnerMap;

use super::{
    cpu_throttle::CpuShare,
    fair_semaphore::{FairPermit, FairSemaphore},
};
use crate::runtime::engine::Limits;

/// Divisor of the host's instances for one plugin: half of them.
const INSTANCE_SHARE_DIVISOR: u32 = 2;

pub struct Bulkhead {
    calls: FairSemaphore,
    /// New calls that wait for an instance.
    queue: FairSemaphore,
    instances: FairSemaphore,
    pub cpu: CpuShare,
    memory: MemoryBudget,
    memory_by_company: OwnerMap<Arc<str>, MemoryBudget>,
    /// Bytes of one company.
    company_bytes: usize,
}

impl Bulkhead {
    pub fn new(limits: &Limits) -> Bulkhead {
        let shared = |permits: usize| FairSemaphore::new(permits, permits.div_ceil(2));
        // One instance may need all memory of a call.
        let bytes = (limits.plugin_memory_bytes / 2).max(limits.memory_bytes);
        Bulkhead {
            calls: shared(limits.calls),
            queue: shared(limits.queue),
            instances: shared(limits.instances.div_ceil(INSTANCE_SHARE_DIVISOR) as usize),
            cpu: CpuShare::default(),
            memory: MemoryBudget::new(limits.plugin_memory_bytes),
            memory_by_company: OwnerMap::default(),
            company_bytes: bytes.min(limits.plugin_memory_bytes),
        }
    }

    pub fn memory_of(&self, company: &Arc<str>) -> Arc<MemoryBudget> {
        self.memory_by_company.get_or_create(company, || self.memory.part(self.company_bytes))
    }

    /// Counts a call until the permit is dropped. `None`: too many calls are in flight.
    pub fn try_begin_call(&self, company: &Arc<str>) -> Option<FairPermit<'_>> {
        self.calls.try_acquire(company)
    }

    /// Acquires an instance. New calls wait in the queue; `None` if it is full. Calls in progress
    /// are not rejected, because their outcome would be unknown.
    pub async fn acquire_instance(
        &self,
        company: &Arc<str>,
        in_progress: bool,
    ) -> Option<FairPermit<'_>> {
        let waiting = match self.instances.try_acquire_or_wait(company, in_progress) {
            Ok(instance) => return Some(instance),
            Err(waiting) => waiting,
        };
        let _place = match in_progress {
            true => None,
            false => Some(self.queue.try_acquire(company)?),
        };
        Some(waiting.permit().await)
    }
}

/// Memory shared by all calls of a plugin: instances, requests and responses.
#[derive(Clone)]
pub struct MemoryBudget {
    /// Of the plugin, then of a company.
    kib: [Arc<Semaphore>; 2],
    max_bytes: usize,
}

/// Reserved memory, released when dropped.
pub struct ReservedMemory {
    _of_plugin: OwnedSemaphorePermit,
    _of_company: Option<OwnedSemaphorePermit>,
}

impl MemoryBudget {
    pub fn new(max_bytes: usize) -> MemoryBudget {
        MemoryBudget { kib: [kib(max_bytes), kib(max_bytes)], max_bytes }
    }

    /// Returns a budget for a part of this one's bytes, which are taken from both.
    fn part(&self, max_bytes: usize) -> MemoryBudget {
        MemoryBudget { kib: [self.kib[0].clone(), kib(max_bytes)], max_bytes }
    }

    /// Reserves memory, in whole KiB. `None`: not enough is available.
    pub fn try_reserve(&self, bytes: usize) -> Option<ReservedMemory> {
        let of_company = reserve(&self.kib[1], bytes)?;
        Some(ReservedMemory { _of_company: Some(of_company), ..self.try_reserve_response(bytes)? })
    }

    /// Reserves memory for the response to a request that was sent. The company's part does not
    /// limit it, because without the response the outcome is unknown.
    pub fn try_reserve_response(&self, bytes: usize) -> Option<ReservedMemory> {
        Some(ReservedMemory { _of_plugin: reserve(&self.kib[0], bytes)?, _of_company: None })
    }

    /// Returns whether the request could ever be granted.
    pub fn could_ever_grant(&self, bytes: usize) -> bool {
        bytes <= self.max_bytes
    }
}

fn reserve(kib: &Arc<Semaphore>, bytes: usize) -> Option<OwnedSemaphorePermit> {
    let wanted = u32::try_from(bytes.div_ceil(1 << 10)).ok()?;
    kib.clone().try_acquire_many_owned(wanted).ok()
}

fn kib(bytes: usize) -> Arc<Semaphore> {
    Arc::new(Semaphore::new((bytes >> 10).min(Semaphore::MAX_PERMITS)))
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    fn bulkhead() -> Bulkhead {
        Bulkhead::new(&Limits { instances: 2, calls: 4, queue: 2, ..Limits::default() })
    }

    fn companies() -> [Arc<str>; 2] {
        ["a", "b"].map(Arc::from)
    }

    #[test]
    fn calls_beyond_the_limit_are_rejected_until_one_ends() {
        let bulkhead = bulkhead();
        let [a, b] = &companies();
        let mut of_a: Vec<_> = (0..2).map(|_| bulkhead.try_begin_call(a)).collect();
        assert!(of_a.iter().all(Option::is_some) && bulkhead.try_begin_call(a).is_none());
        let of_b: Vec<_> = (0..2).map(|_| bulkhead.try_begin_call(b)).collect();
        assert!(of_b.iter().all(Option::is_some), "half is left for others");
        of_a.pop();
        assert!(bulkhead.try_begin_call(&"c".into()).is_some());
        assert!(bulkhead.try_begin_call(a).is_some());
    }

    #[test]
    fn a_full_queue_rejects_new_calls_but_not_calls_in_progress() {
        let bulkhead = bulkhead();
        let [a, b] = &companies();
        let running = bulkhead.acquire_instance(a, false).now_or_never().unwrap();
        assert!(running.is_some(), "half of two instances");
        let mut waits = Box::pin(bulkhead.acquire_instance(a, false));
        assert!(waits.as_mut().now_or_never().is_none());
        assert!(
            bulkhead.acquire_instance(a, false).now_or_never().unwrap().is_none(),
            "the company's half of the queue is full"
        );
        assert!(bulkhead.acquire_instance(b, false).now_or_never().is_none(), "the other waits");
        assert!(bulkhead.acquire_instance(a, true).now_or_never().is_none(), "it skips the queue");
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

    #[test]
    fn a_company_reserves_at_most_its_part_of_the_memory() {
        let plugin = MemoryBudget::new(10 << 10);
        let [a, b, c] = [(); 3].map(|()| plugin.part(5 << 10));
        let of_a = a.try_reserve(5 << 10);
        assert!(of_a.is_some() && a.try_reserve(1).is_none());
        assert!(a.try_reserve_response(1).is_some());
        let of_b = b.try_reserve(5 << 10);
        assert!(of_b.is_some() && c.try_reserve(1).is_none());
        drop(of_a);
        assert!(c.try_reserve(5 << 10).is_some() && !c.could_ever_grant(6 << 10));
    }
}
