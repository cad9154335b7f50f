//! CPU throttling: calls that need little CPU time do not wait for calls that need much.

use std::{
    future::{Future, poll_fn},
    pin::pin,
    task::Poll,
    time::Duration,
};

use tokio::sync::{Semaphore, SemaphorePermit};

use super::cpu::CpuMeter;

/// CPU time above which a call is throttled.
const FAST: Duration = Duration::from_millis(5);

/// CPU permits for throttled calls: half of the cores.
pub struct Turns(Semaphore);

impl Default for Turns {
    fn default() -> Turns {
        let half = std::thread::available_parallelism().map_or(1, |cores| cores.get() / 2);
        Turns(Semaphore::new(half.max(1)))
    }
}

/// The CPU permits that a plugin's calls need.
pub struct Lane<'l> {
    /// The plugin's own, acquired first: they bound its calls that queue for the shared ones.
    pub own: &'l Turns,
    pub of_all: &'l Turns,
}

impl<'l> Lane<'l> {
    async fn turn(&self) -> (Option<SemaphorePermit<'l>>, Option<SemaphorePermit<'l>>) {
        // The semaphores are never closed.
        (self.own.0.acquire().await.ok(), self.of_all.0.acquire().await.ok())
    }
}

/// Polls a future and meters it. `used` is updated after each poll, so that it survives a drop of
/// this future. Above `FAST`, the future continues only with CPU permits.
pub async fn paced<F: Future>(
    future: F,
    meter: &CpuMeter,
    used: &mut Duration,
    lane: &Lane<'_>,
) -> F::Output {
    let mut future = pin!(future);
    let mut in_lane = None;
    loop {
        let polled = poll_fn(|context| {
            let polled = meter.count(|| future.as_mut().poll(context));
            *used = meter.used();
            Poll::Ready(polled)
        });
        if let Poll::Ready(output) = polled.await {
            return output;
        }
        match *used > FAST && in_lane.is_none() {
            true => in_lane = Some(lane.turn().await),
            false => tokio::task::yield_now().await,
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[test]
    fn the_queue_of_one_plugin_does_not_delay_another() {
        let (of_all, [a, b]) =
            (Turns(Semaphore::new(1)), [(), ()].map(|()| Turns(Semaphore::new(1))));
        let (a, b) = (Lane { own: &a, of_all: &of_all }, Lane { own: &b, of_all: &of_all });
        let running = a.turn().now_or_never().expect("permits are free");
        let mut queue: Vec<_> = (0..3).map(|_| Box::pin(a.turn())).collect();
        assert!(queue.iter_mut().all(|waits| waits.as_mut().now_or_never().is_none()));
        let mut other = Box::pin(b.turn());
        assert!(other.as_mut().now_or_never().is_none());
        drop(running);
        assert!(queue.iter_mut().all(|waits| waits.as_mut().now_or_never().is_none()));
        assert!(other.now_or_never().is_some(), "before three earlier calls of the other plugin");
    }
}
