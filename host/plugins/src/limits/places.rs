//! A semaphore that serves calls in progress first: on a timeout, their outcome would be unknown.

use tokio::sync::{Mutex, Semaphore, SemaphorePermit};

pub struct Places {
    free: Semaphore,
    /// Held by the first new call, the only one that competes with calls in progress.
    line: Mutex<()>,
}

impl Places {
    #[must_use]
    pub fn new(count: usize) -> Places {
        Places { free: Semaphore::new(count), line: Mutex::default() }
    }

    /// Returns the number of free permits.
    #[must_use]
    pub fn free(&self) -> usize {
        self.free.available_permits()
    }

    /// Acquires a permit if one is free.
    pub fn take_free(&self) -> Option<SemaphorePermit<'_>> {
        self.free.try_acquire().ok()
    }

    /// Waits for a permit. Never returns `None`, because the semaphore is never closed.
    pub async fn take(&self, has_begun: bool) -> Option<SemaphorePermit<'_>> {
        let _line = if has_begun { None } else { Some(self.line.lock().await) };
        self.free.acquire().await.ok()
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[test]
    fn at_most_one_new_call_is_served_before_a_call_in_progress() {
        let places = Places::new(1);
        let taken = places.take_free().expect("a place");
        let mut new: Vec<_> = (0..3).map(|_| Box::pin(places.take(false))).collect();
        assert!(new.iter_mut().all(|waits| waits.as_mut().now_or_never().is_none()));
        let mut begun = Box::pin(places.take(true));
        assert!(begun.as_mut().now_or_never().is_none());
        drop(taken);
        let first = new[0].as_mut().now_or_never().expect("the first").expect("a place");
        assert!(
            new[1].as_mut().now_or_never().is_none() && begun.as_mut().now_or_never().is_none()
        );
        drop(first);
        assert!(begun.now_or_never().is_some(), "before the other new calls");
        assert!(new[1].as_mut().now_or_never().is_some());
    }
}
