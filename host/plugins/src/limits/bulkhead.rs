//! Limits that all versions of one plugin share: calls, queue, instances, CPU permits and memory.
//! One company gets at most half of the calls, of the queue and of the memory, and takes turns with
//! the others on instances and processors.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit};
use tollhouse_platform::limits::owner::OwnerMap;

use super::{
    cpu_throttle::CpuShare,
    priority_semaphore::{CompanyQueue, PrioritySemaphore},
};
use crate::runtime::engine::Limits;

/// Divisor of the host's instances for one plugin: half of them.
const INSTANCE_SHARE_DIVISOR: u32 = 2;

pub struct Bulkhead {
    calls: Semaphore,
    /// New calls that wait for an instance.
    queue: Semaphore,
    instances: PrioritySemaphore,
    pub cpu: CpuShare,
    memory: MemoryBudget,
    companies: OwnerMap<Arc<str>, CompanyShare>,
    /// Calls and queued calls of one company.
    company_limits: [usize; 2],
}

/// The share of one company.
pub struct CompanyShare {
    calls: Semaphore,
    queue: Semaphore,
    instances: CompanyQueue,
    pub memory: MemoryBudget,
    /// Its calls that wait for an instance of the host.
    pub slots: CompanyQueue,
    /// Its calls that wait for their turns on the processors.
    pub turns: CompanyQueue,
    pub throttled: CompanyQueue,
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
            companies: OwnerMap::default(),
            company_limits: [limits.calls.div_ceil(2), limits.queue.div_ceil(2)],
        }
    }

    pub fn share(&self, company: &Arc<str>) -> Arc<CompanyShare> {
        self.companies.get_or_create(company, || {
            let [calls, queue] = self.company_limits.map(Semaphore::new);
            let memory = self.memory.half();
            let [instances, slots, turns, throttled] = Default::default();
            CompanyShare { calls, queue, instances, memory, slots, turns, throttled }
        })
    }

    /// Counts a call until the permits are dropped. `None`: too many calls are in flight.
    pub fn try_begin_call<'b>(
        &'b self,
        share: &'b CompanyShare,
    ) -> Option<[SemaphorePermit<'b>; 2]> {
        Some([self.calls.try_acquire().ok()?, share.calls.try_acquire().ok()?])
    }

    /// Acquires an instance permit. New calls wait in the queue; `None` if it is full. Calls in
    /// progress are not rejected, because their outcome would be unknown.
    pub async fn acquire_instance(
        &self,
        share: &CompanyShare,
        in_progress: bool,
    ) -> Option<SemaphorePermit<'_>> {
        if let Some(permit) = self.instances.try_acquire() {
            return Some(permit);
        }
        let _waits = match in_progress {
            true => None,
            false => Some([self.queue.try_acquire().ok()?, share.queue.try_acquire().ok()?]),
        };
        self.instances.acquire(&share.instances, in_progress).await
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
    _permits: [OwnedSemaphorePermit; 2],
}

impl MemoryBudget {
    pub fn new(max_bytes: usize) -> MemoryBudget {
        MemoryBudget { kib: [kib(max_bytes), kib(max_bytes)], max_bytes }
    }

    /// Returns a budget for half of this one's bytes, which are taken from both.
    fn half(&self) -> MemoryBudget {
        let max_bytes = self.max_bytes / 2;
        MemoryBudget { kib: [self.kib[0].clone(), kib(max_bytes)], max_bytes }
    }

    /// Reserves memory, in whole KiB. `None`: not enough is available.
    pub fn try_reserve(&self, bytes: usize) -> Option<ReservedMemory> {
        let kib = u32::try_from(bytes.div_ceil(1 << 10)).ok()?;
        let reserve = |from: &Arc<Semaphore>| from.clone().try_acquire_many_owned(kib).ok();
        Some(ReservedMemory { _permits: [reserve(&self.kib[0])?, reserve(&self.kib[1])?] })
    }

    /// Returns whether the request could ever be granted.
    pub fn could_ever_grant(&self, bytes: usize) -> bool {
        bytes <= self.max_bytes
    }
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

    fn shares(bulkhead: &Bulkhead) -> [Arc<CompanyShare>; 2] {
        ["a", "b"].map(|company| bulkhead.share(&company.into()))
    }

    #[test]
    fn calls_beyond_the_limit_are_rejected_until_one_ends() {
        let bulkhead = bulkhead();
        let [a, b] = &shares(&bulkhead);
        let mut of_a: Vec<_> = (0..2).map(|_| bulkhead.try_begin_call(a)).collect();
        assert!(of_a.iter().all(Option::is_some) && bulkhead.try_begin_call(a).is_none());
        let of_b: Vec<_> = (0..2).map(|_| bulkhead.try_begin_call(b)).collect();
        assert!(of_b.iter().all(Option::is_some), "half is left for others");
        of_a.pop();
        assert!(bulkhead.try_begin_call(&bulkhead.share(&"c".into())).is_some());
        assert!(bulkhead.try_begin_call(a).is_some());
    }

    #[test]
    fn a_full_queue_rejects_new_calls_but_not_calls_in_progress() {
        let bulkhead = bulkhead();
        let [a, b] = &shares(&bulkhead);
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
    fn a_company_reserves_at_most_half_of_the_memory() {
        let plugin = MemoryBudget::new(10 << 10);
        let [a, b, c] = [plugin.half(), plugin.half(), plugin.half()];
        let of_a = a.try_reserve(5 << 10);
        assert!(of_a.is_some() && a.try_reserve(1).is_none());
        let of_b = b.try_reserve(5 << 10);
        assert!(of_b.is_some() && c.try_reserve(1).is_none());
        drop(of_a);
        assert!(c.try_reserve(5 << 10).is_some() && !c.could_ever_grant(6 << 10));
    }
}
