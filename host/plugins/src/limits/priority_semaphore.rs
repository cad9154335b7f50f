//! A semaphore that serves calls in progress first, because their outcome would be unknown after a
//! timeout, and then companies in turn.

use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use tokio::sync::{Mutex, Notify, Semaphore, SemaphorePermit};

pub struct PrioritySemaphore {
    permits: Semaphore,
    /// Held by the first new call, the only one that competes with calls in progress.
    new_calls: Mutex<()>,
    waiting: Waiting,
}

/// The calls in progress that wait.
#[derive(Default)]
struct Waiting {
    count: AtomicUsize,
    /// Notified when none waits any more.
    none: Notify,
}

/// A call in progress that waits until this is dropped.
struct WaitingCall<'w>(&'w Waiting);

impl Waiting {
    fn begin(&self) -> WaitingCall<'_> {
        self.count.fetch_add(1, SeqCst);
        WaitingCall(self)
    }

    async fn until_none(&self) {
        loop {
            let none = self.none.notified();
            if self.count.load(SeqCst) == 0 {
                return;
            }
            none.await;
        }
    }
}

impl Drop for WaitingCall<'_> {
    fn drop(&mut self) {
        if self.0.count.fetch_sub(1, SeqCst) == 1 {
            self.0.none.notify_waiters();
        }
    }
}

/// The calls of one company that wait for a [`PrioritySemaphore`]. Only the first of them competes
/// with those of other companies, so that companies take turns.
#[derive(Default)]
pub struct CompanyQueue {
    new: Mutex<()>,
    in_progress: Mutex<()>,
}

impl PrioritySemaphore {
    pub fn new(count: usize) -> PrioritySemaphore {
        PrioritySemaphore {
            permits: Semaphore::new(count),
            new_calls: Mutex::default(),
            waiting: Waiting::default(),
        }
    }

    pub fn available_permits(&self) -> usize {
        self.permits.available_permits()
    }

    /// Acquires a permit if one is free.
    pub fn try_acquire(&self) -> Option<SemaphorePermit<'_>> {
        self.permits.try_acquire().ok()
    }

    /// Waits for a permit. Never returns `None`, because the semaphore is never closed.
    pub async fn acquire(
        &self,
        company: &CompanyQueue,
        in_progress: bool,
    ) -> Option<SemaphorePermit<'_>> {
        if let Some(permit) = self.try_acquire() {
            return Some(permit);
        }
        if in_progress {
            let _waits = self.waiting.begin();
            let _place = company.in_progress.lock().await;
            return self.permits.acquire().await.ok();
        }
        let _places = (company.new.lock().await, self.new_calls.lock().await);
        self.waiting.until_none().await;
        self.permits.acquire().await.ok()
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[test]
    fn at_most_one_new_call_is_served_before_a_call_in_progress() {
        let (semaphore, company) = (PrioritySemaphore::new(1), CompanyQueue::default());
        let taken = semaphore.try_acquire().expect("a permit");
        let mut new: Vec<_> =
            (0..3).map(|_| Box::pin(semaphore.acquire(&company, false))).collect();
        assert!(new.iter_mut().all(|waits| waits.as_mut().now_or_never().is_none()));
        let mut begun: Vec<_> =
            (0..3).map(|_| Box::pin(semaphore.acquire(&company, true))).collect();
        assert!(begun.iter_mut().all(|waits| waits.as_mut().now_or_never().is_none()));
        drop(taken);
        let mut held = new.remove(0).now_or_never().expect("the first").expect("a permit");
        for _ in 0..3 {
            assert!(new.iter_mut().all(|waits| waits.as_mut().now_or_never().is_none()));
            drop(held);
            let next = begun.remove(0).now_or_never().expect("before the other new calls");
            held = next.expect("a permit");
            assert!(begun.iter_mut().all(|waits| waits.as_mut().now_or_never().is_none()));
        }
        drop(held);
        assert!(new.remove(0).now_or_never().is_some());
    }

    #[test]
    fn a_company_waits_for_one_call_of_another_company_that_has_many() {
        wait_for_one_call(true);
        wait_for_one_call(false);
    }

    fn wait_for_one_call(in_progress: bool) {
        let (semaphore, [busy, quiet]) = (PrioritySemaphore::new(1), Default::default());
        let taken = semaphore.try_acquire().expect("a permit");
        let mut many: Vec<_> =
            (0..100).map(|_| Box::pin(semaphore.acquire(&busy, in_progress))).collect();
        assert!(many.iter_mut().all(|waits| waits.as_mut().now_or_never().is_none()));
        let mut one = Box::pin(semaphore.acquire(&quiet, in_progress));
        assert!(one.as_mut().now_or_never().is_none());
        drop(taken);
        let first = many[0].as_mut().now_or_never().expect("the first").expect("a permit");
        drop(many.drain(..1));
        assert!(many.iter_mut().all(|waits| waits.as_mut().now_or_never().is_none()));
        drop(first);
        assert!(many.iter_mut().all(|waits| waits.as_mut().now_or_never().is_none()));
        assert!(one.now_or_never().is_some(), "before 99 earlier calls of the other company");
    }
}
