//! The open model: starts operations on the schedule, on a thread of its own, because the timers of
//! the runtime have a resolution of a millisecond and share their threads with the responses.

use std::{
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// A slot of an operation in flight; `None` if all are in use.
pub type Slot = Option<OwnedSemaphorePermit>;

/// Calls `start` at `began` plus each offset, and then waits until every slot is free.
///
/// `start` must not block. If the thread wakes up late, it catches up immediately; each call has
/// its intended time.
pub async fn drive(
    offsets: impl Iterator<Item = Duration> + Send + 'static,
    began: Instant,
    slots: usize,
    mut start: impl FnMut(Instant, Slot) + Send + 'static,
) {
    let semaphore = Arc::new(Semaphore::new(slots));
    let available = semaphore.clone();
    let dispatched = tokio::task::spawn_blocking(move || {
        for offset in offsets {
            let intended = began + offset;
            thread::sleep(intended.saturating_duration_since(Instant::now()));
            start(intended, available.clone().try_acquire_owned().ok());
        }
    });
    dispatched.await.expect("operations start without a panic");
    let all = u32::try_from(slots).unwrap_or(u32::MAX);
    let _ = semaphore.acquire_many(all).await;
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering::SeqCst},
    };

    use tokio::runtime::Handle;

    use super::*;

    #[tokio::test]
    async fn operations_start_while_earlier_ones_are_in_flight() {
        let began = Instant::now();
        let offsets = [0, 1, 1, 2].map(Duration::from_millis);
        let (release, runtime) = (Arc::new(Semaphore::new(0)), Handle::current());
        let ended = Arc::new(AtomicUsize::new(0));
        let started = Arc::new(Mutex::new(Vec::new()));
        let (seen, done) = (started.clone(), ended.clone());
        drive(offsets.into_iter(), began, 3, move |intended, slot| {
            seen.lock().unwrap().push((intended - began, slot.is_some()));
            let Some(slot) = slot else { return release.add_permits(3) };
            let (release, done) = (release.clone(), done.clone());
            runtime.spawn(async move {
                release.acquire().await.unwrap().forget();
                done.fetch_add(1, SeqCst);
                drop(slot);
            });
        })
        .await;
        let slots = [true, true, true, false];
        assert_eq!(*started.lock().unwrap(), offsets.into_iter().zip(slots).collect::<Vec<_>>());
        assert_eq!(ended.load(SeqCst), 3, "waits for those in flight");
    }
}
