//! Whose turn it is: those who need little processor time are not kept waiting by those who need much.

use std::{
    future::{Future, poll_fn},
    pin::pin,
    task::Poll,
    time::Duration,
};

use tokio::sync::{Semaphore, SemaphorePermit};

use super::cpu::CpuMeter;

/// Processor time after which a call goes on in the slow lane.
const FAST: Duration = Duration::from_millis(5);

/// Half of the processors, for calls that need much.
pub struct Turns(Semaphore);

impl Default for Turns {
    fn default() -> Turns {
        let half = std::thread::available_parallelism().map_or(1, |cores| cores.get() / 2);
        Turns(Semaphore::new(half.max(1)))
    }
}

/// The slow lane, as one plugin's calls come to it.
pub struct Lane<'l> {
    /// The plugin's own: few of its calls stand in front of another's.
    pub own: &'l Turns,
    pub of_all: &'l Turns,
}

impl<'l> Lane<'l> {
    async fn turn(&self) -> (Option<SemaphorePermit<'l>>, Option<SemaphorePermit<'l>>) {
        // Nobody closes them.
        (self.own.0.acquire().await.ok(), self.of_all.0.acquire().await.ok())
    }
}

/// Polls a future as work of `meter`, whose time is in `used` after each poll, so that it stays when this is dropped. A future that has
/// used much goes on in the slow lane.
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
    fn one_plugins_queue_is_not_in_front_of_another() {
        let (of_all, [a, b]) =
            (Turns(Semaphore::new(1)), [(), ()].map(|()| Turns(Semaphore::new(1))));
        let (a, b) = (Lane { own: &a, of_all: &of_all }, Lane { own: &b, of_all: &of_all });
        let running = a.turn().now_or_never().expect("nobody else");
        let mut queue: Vec<_> = (0..3).map(|_| Box::pin(a.turn())).collect();
        assert!(queue.iter_mut().all(|waits| waits.as_mut().now_or_never().is_none()));
        let mut other = Box::pin(b.turn());
        assert!(other.as_mut().now_or_never().is_none());
        drop(running);
        assert!(queue.iter_mut().all(|waits| waits.as_mut().now_or_never().is_none()));
        assert!(other.now_or_never().is_some(), "next, though three came before it");
    }
}
