//! Limits that all versions of one plugin share: calls, queue, instances, CPU permits and memory.
//! One company gets at most half of each, and takes turns with the others on processors.

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
    /// Calls, queued calls, instances and bytes of one company.
    company_limits: [usize; 4],
}

/// The share of one company.
pub struct CompanyShare {
    calls: Semaphore,
    queue: Semaphore,
    instances: PrioritySemaphore,
    pub memory: MemoryBudget,
    /// Its calls that wait for an instance: of its own, of the plugin, and of the host.
    own_queue: CompanyQueue,
    plugin_queue: CompanyQueue,
    pub slots: CompanyQueue,
    /// Its calls that wait for their turns on the processors.
    pub turns: CompanyQueue,
    pub throttled: CompanyQueue,
}

impl Bulkhead {
    pub fn new(limits: &Limits) -> Bulkhead {
        let instances = limits.instances.div_ceil(INSTANCE_SHARE_DIVISOR) as usize;
        // One instance may need all memory of a call.
        let bytes = (limits.plugin_memory_bytes / 2).max(limits.memory_bytes);
        Bulkhead {
            calls: Semaphore::new(limits.calls),
            queue: Semaphore::new(limits.queue),
            instances: PrioritySemaphore::new(instances),
            cpu: CpuShare::default(),
            memory: MemoryBudget::new(limits.plugin_memory_bytes),
            companies: OwnerMap::default(),
            company_limits: [
                limits.calls.div_ceil(2),
                limits.queue.div_ceil(2),
                instances.div_ceil(2),
                bytes.min(limits.plugin_memory_bytes),
            ],
        }
    }

    pub fn share(&self, company: &Arc<str>) -> Arc<CompanyShare> {
        self.companies.get_or_create(company, || {
            let [calls, queue, instances, bytes] = self.company_limits;
            let [own_queue, plugin_queue, slots, turns, throttled] = Default::default();
            CompanyShare {
                calls: Semaphore::new(calls),
                queue: Semaphore::new(queue),
                instances: PrioritySemaphore::new(instances),
                memory: self.memory.part(bytes),
                own_queue,
                plugin_queue,
                slots,
                turns,
                throttled,
            }
        })
    }

    /// Counts a call until the permits are dropped. `None`: too many calls are in flight.
    pub fn try_begin_call<'b>(
        &'b self,
        share: &'b CompanyShare,
    ) -> Option<[SemaphorePermit<'b>; 2]> {
        Some([self.calls.try_acquire().ok()?, share.calls.try_acquire().ok()?])
    }

    /// Acquires instance permits, of the company and of the plugin. New calls wait in the queue;
    /// `None` if it is full. Calls in progress are not rejected, because their outcome would be
    /// unknown.
    pub async fn acquire_instance<'b>(
        &'b self,
        share: &'b CompanyShare,
        in_progress: bool,
    ) -> Option<[SemaphorePermit<'b>; 2]> {
        let own = share.instances.try_acquire();
        if own.is_some()
            && let Some(permit) = self.instances.try_acquire()
        {
            return Some([own?, permit]);
        }
        let _waits = match in_progress {
            true => None,
            false => Some([self.queue.try_acquire().ok()?, share.queue.try_acquire().ok()?]),
        };
        let own = match own {
            Some(own) => own,
            None => share.instances.acquire(&share.own_queue, in_progress).await?,
        };
        Some([own, self.instances.acquire(&share.plugin_queue, in_progress).await?])
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
