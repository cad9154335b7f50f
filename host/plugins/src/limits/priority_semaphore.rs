//! A semaphore that serves calls in progress first: on a timeout, their outcome would be unknown.

use tokio::sync::{Mutex, Semaphore, SemaphorePermit};

pub struct PrioritySemaphore {
    permits: Semaphore,
    /// Held by the first new call, the only one that competes with calls in progress.
    new_calls: Mutex<()>,
}

impl PrioritySemaphore {
    pub fn new(count: usize) -> PrioritySemaphore {
        PrioritySemaphore { permits: Semaphore::new(count), new_calls: Mutex::default() }
    }

    pub fn available_permits(&self) -> usize {
        self.permits.available_permits()
    }

    /// Acquires a permit if one is free.
    pub fn try_acquire(&self) -> Option<SemaphorePermit<'_>> {
        self.permits.try_acquire().ok()
    }

    /// Waits for a permit. Never returns `None`, because the semaphore is never closed.
    pub async fn acquire(&self, in_progress: bool) -> Option<SemaphorePermit<'_>> {
        let _line = if in_progress { None } else { Some(self.new_calls.lock().await) };
        self.permits.acquire().await.ok()
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[test]
    fn at_most_one_new_call_is_served_before_a_call_in_progress() {
        let semaphore = PrioritySemaphore::new(1);
        let taken = semaphore.try_acquire().expect("a permit");
        let mut new: Vec<_> = (0..3).map(|_| Box::pin(semaphore.acquire(false))).collect();
        assert!(new.iter_mut().all(|waits| waits.as_mut().now_or_never().is_none()));
        let mut begun = Box::pin(semaphore.acquire(true));
        assert!(begun.as_mut().now_or_never().is_none());
        drop(taken);
        let first = new[0].as_mut().now_or_never().expect("the first").expect("a permit");
        assert!(
            new[1].as_mut().now_or_never().is_none() && begun.as_mut().now_or_never().is_none()
        );
        drop(first);
        assert!(begun.now_or_never().is_some(), "before the other new calls");
        assert!(new[1].as_mut().now_or_never().is_some());
    }
}
