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
const UNTHROTTLED_CPU: Duration = Duration::from_millis(5);

/// CPU permits for throttled calls: half of the cores.
pub struct CpuPermits(Semaphore);

impl Default for CpuPermits {
    fn default() -> CpuPermits {
        let half = std::thread::available_parallelism().map_or(1, |cores| cores.get() / 2);
        CpuPermits(Semaphore::new(half.max(1)))
    }
}

/// The CPU permits that a plugin's calls need.
pub struct CpuThrottle<'l> {
    /// The plugin's own, acquired first: they bound its calls that queue for the shared ones.
    pub plugin_permits: &'l CpuPermits,
    pub host_permits: &'l CpuPermits,
}

impl<'l> CpuThrottle<'l> {
    async fn acquire(&self) -> (Option<SemaphorePermit<'l>>, Option<SemaphorePermit<'l>>) {
        // The semaphores are never closed.
        (self.plugin_permits.0.acquire().await.ok(), self.host_permits.0.acquire().await.ok())
    }
}

/// Polls a future and meters it. `used` is updated after each poll, so that it survives a drop of
/// this future. Above `FAST`, the future continues only with CPU permits.
pub async fn throttled<F: Future>(
    future: F,
    meter: &CpuMeter,
    used: &mut Duration,
    throttle: &CpuThrottle<'_>,
) -> F::Output {
    let mut future = pin!(future);
    let mut permits = None;
    loop {
        let polled = poll_fn(|context| {
            let polled = meter.count(|| future.as_mut().poll(context));
            *used = meter.used();
            Poll::Ready(polled)
        });
        if let Poll::Ready(output) = polled.await {
            return output;
        }
        match *used > UNTHROTTLED_CPU && permits.is_none() {
            true => permits = Some(throttle.acquire().await),
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
            (CpuPermits(Semaphore::new(1)), [(), ()].map(|()| CpuPermits(Semaphore::new(1))));
        let (a, b) = (
            CpuThrottle { plugin_permits: &a, host_permits: &of_all },
            CpuThrottle { plugin_permits: &b, host_permits: &of_all },
        );
        let running = a.acquire().now_or_never().expect("permits are free");
        let mut queue: Vec<_> = (0..3).map(|_| Box::pin(a.acquire())).collect();
        assert!(queue.iter_mut().all(|waits| waits.as_mut().now_or_never().is_none()));
        let mut other = Box::pin(b.acquire());
        assert!(other.as_mut().now_or_never().is_none());
        drop(running);
        assert!(queue.iter_mut().all(|waits| waits.as_mut().now_or_never().is_none()));
        assert!(other.now_or_never().is_some(), "before three earlier calls of the other plugin");
    }
}
