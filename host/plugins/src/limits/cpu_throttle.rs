//! CPU throttling: the calls of a plugin take turns on half of the processors, so that many of them
//! delay another plugin less. Calls that need little CPU time do not wait for calls that need much.

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

/// The share of one plugin.
pub struct CpuShare {
    /// One for each poll of a run, which yields its turn at each epoch.
    turns: Semaphore,
    /// One for each throttled call.
    throttled: Semaphore,
}

impl Default for CpuShare {
    fn default() -> CpuShare {
        CpuShare { turns: cpu_permits(), throttled: cpu_permits() }
    }
}

/// Creates permits: one per two cores.
pub fn cpu_permits() -> Semaphore {
    let half = std::thread::available_parallelism().map_or(1, |cores| cores.get() / 2);
    Semaphore::new(half.max(1))
}

/// Acquires a permit of the plugin, then one of the host: the plugin's own permits bound its calls
/// that queue for the shared ones.
async fn acquire<'s>([plugin, host]: [&'s Semaphore; 2]) -> [Option<SemaphorePermit<'s>>; 2] {
    // The semaphores are never closed.
    [plugin.acquire().await.ok(), host.acquire().await.ok()]
}

/// Polls a future in turn with the other runs of the plugin, and meters it. `used` is updated after
/// each poll, so that it survives a drop of this future. Above `UNTHROTTLED_CPU`, the future
/// continues only with permits of the plugin and of the host.
pub async fn throttled<F: Future>(
    future: F,
    meter: &CpuMeter,
    used: &mut Duration,
    plugin: &CpuShare,
    host: &Semaphore,
) -> F::Output {
    let mut future = pin!(future);
    let mut acquired = None;
    loop {
        // A run that holds permits, for which others wait, needs no turn.
        let turn = match acquired {
            None => plugin.turns.acquire().await.ok(),
            Some(_) => None,
        };
        let polled = poll_fn(|context| {
            let polled = meter.count(|| future.as_mut().poll(context));
            *used = meter.used();
            Poll::Ready(polled)
        });
        if let Poll::Ready(output) = polled.await {
            return output;
        }
        drop(turn);
        match *used > UNTHROTTLED_CPU && acquired.is_none() {
            true => acquired = Some(acquire([&plugin.throttled, host]).await),
            false => tokio::task::yield_now().await,
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[test]
    fn a_run_waits_for_its_turn_and_yields_it() {
        let share = CpuShare { turns: Semaphore::new(1), throttled: Semaphore::new(1) };
        let (host, meter) = (Semaphore::new(1), CpuMeter::default());
        let (mut used, mut other_used) = (Duration::ZERO, Duration::ZERO);
        let other_run = throttled(async {}, &meter, &mut other_used, &share, &host);
        let mut other_run = pin!(other_run);
        let run = async {
            assert!(other_run.as_mut().now_or_never().is_none(), "two runs at once");
            tokio::task::yield_now().await;
        };
        let mut run = Box::pin(throttled(run, &meter, &mut used, &share, &host));
        assert!(run.as_mut().now_or_never().is_none());
        drop(run);
        assert!(other_run.now_or_never().is_some());
    }

    #[test]
    fn the_queue_of_one_plugin_does_not_delay_another() {
        let [of_all, a, b] = [(); 3].map(|()| Semaphore::new(1));
        let [a, b] = [[&a, &of_all], [&b, &of_all]];
        let running = acquire(a).now_or_never().expect("permits are free");
        let mut queue: Vec<_> = (0..3).map(|_| Box::pin(acquire(a))).collect();
        assert!(queue.iter_mut().all(|waits| waits.as_mut().now_or_never().is_none()));
        let mut other = Box::pin(acquire(b));
        assert!(other.as_mut().now_or_never().is_none());
        drop(running);
        assert!(queue.iter_mut().all(|waits| waits.as_mut().now_or_never().is_none()));
        assert!(other.now_or_never().is_some(), "before three earlier calls of the other plugin");
    }
}
