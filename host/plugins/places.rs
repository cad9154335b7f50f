//! Places for a few at a time. Who has begun waits for the next one in front of those who have not: it would be unknown what a call has
//! done that ends waiting.

use tokio::sync::{Mutex, Semaphore, SemaphorePermit};

pub struct Places {
    free: Semaphore,
    /// The first of those who have not begun holds it, and is the only one of them who waits beside those who have.
    line: Mutex<()>,
}

impl Places {
    #[must_use]
    pub fn new(count: usize) -> Places {
        Places { free: Semaphore::new(count), line: Mutex::default() }
    }

    /// How many nobody has.
    #[must_use]
    pub fn free(&self) -> usize {
        self.free.available_permits()
    }

    /// One that nobody has, without waiting.
    pub fn take_free(&self) -> Option<SemaphorePermit<'_>> {
        self.free.try_acquire().ok()
    }

    /// The next one. `None` never comes: nobody closes them.
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
    fn one_who_has_not_begun_at_most_is_in_front_of_who_has() {
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
        assert!(begun.now_or_never().is_some(), "before the second and the third");
        assert!(new[1].as_mut().now_or_never().is_some());
    }
}
