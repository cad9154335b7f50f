//! CPU throttling: a company's calls of a plugin take turns on half of the processors, so that many
//! of them delay other companies and plugins less. One more turn is reserved for calls of other
//! companies, which therefore rarely wait. Calls that need little CPU time do not wait for calls
//! that need much.

use std::{
    future::{Future, poll_fn},
    pin::pin,
    sync::Arc,
    task::Poll,
    time::Duration,
};

use tokio::sync::{Semaphore, SemaphorePermit};

use super::{
    cpu::{CpuMeter, RunningGuest},
    fair_semaphore::{FairPermit, FairSemaphore},
};

/// CPU time above which a call is throttled.
const UNTHROTTLED_CPU: Duration = Duration::from_millis(5);

/// The share of one plugin.
pub struct CpuShare {
    /// One for each poll of a run, which yields its turn at the end of an epoch. One more than a
    /// company may hold.
    turns: FairSemaphore,
    /// One for each throttled call.
    throttled: FairSemaphore,
}

/// Where a run gets its permits from.
pub struct CpuPermits<'a> {
    pub plugin: &'a CpuShare,
    pub company: &'a Arc<str>,
    /// Permits of the throttled calls of all plugins.
    pub host: &'a Semaphore,
    /// Makes all running guests yield. A guest continues at once if no run waits for its turn.
    pub interrupt: &'a (dyn Fn() + Send + Sync),
}

impl Default for CpuShare {
    fn default() -> CpuShare {
        CpuShare::new(cpu_permits())
    }
}

impl CpuShare {
    fn new(permits: usize) -> CpuShare {
        CpuShare {
            turns: FairSemaphore::new(permits + 1, permits),
            throttled: FairSemaphore::new(permits, permits),
        }
    }
}

impl<'a> CpuPermits<'a> {
    /// Takes a turn. The first time, a run whose company has no other run interrupts those
    /// in progress.
    async fn turn(&self, is_first: bool) -> FairPermit<'a> {
        match self.plugin.turns.try_acquire_or_wait(self.company, false) {
            Ok(turn) => turn,
            Err(waiting) => {
                if is_first && waiting.is_only {
                    (self.interrupt)();
                }
                waiting.permit().await
            }
        }
    }

    /// Acquires the permits of a throttled call: one of the plugin, then one of the host. The
    /// plugin's own permits bound its calls that queue for the shared ones.
    async fn throttled(&self) -> (FairPermit<'a>, Option<SemaphorePermit<'a>>) {
        let plugin = self.plugin.throttled.acquire(self.company, false).await;
        // The semaphore is never closed.
        (plugin, self.host.acquire().await.ok())
    }
}

/// Returns the number of permits: one per two cores.
pub fn cpu_permits() -> usize {
    std::thread::available_parallelism().map_or(1, |cores| cores.get() / 2).max(1)
}

/// Polls a run in turn with the other runs of the plugin. When its call, which `meter` measures,
/// has used more than `UNTHROTTLED_CPU`, the run continues only with permits of the plugin and of
/// the host.
pub async fn throttled<F: Future>(run: F, meter: &CpuMeter, permits: CpuPermits<'_>) -> F::Output {
    let mut run = pin!(run);
    let (mut acquired, mut is_first) = (None, true);
    loop {
        // A run that holds throttling permits needs no turn: other runs wait for these permits.
        let turn = match acquired {
            None => Some(permits.turn(is_first).await),
            Some(_) => None,
        };
        is_first = false;
        let polled = poll_fn(|context| {
            let _running = RunningGuest::begin();
            meter.resume_guest();
            Poll::Ready(run.as_mut().poll(context))
        });
        if let Poll::Ready(output) = polled.await {
            return output;
        }
        drop(turn);
        match acquired.is_none() && meter.exceeds(UNTHROTTLED_CPU) {
            true => acquired = Some(permits.throttled().await),
            false => tokio::task::yield_now().await,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

    use futures::FutureExt;

    use super::*;

    fn companies() -> [Arc<str>; 3] {
        ["a", "b", "c"].map(Arc::from)
    }

    #[test]
    fn a_run_waits_for_its_turn_and_yields_it() {
        let (plugin, host, [a, b, c]) = (CpuShare::new(1), Semaphore::new(1), companies());
        let permits =
            |company| CpuPermits { plugin: &plugin, company, host: &host, interrupt: &|| () };
        let meter = CpuMeter::default();
        let mut queue: Vec<_> =
            (0..50).map(|_| Box::pin(throttled(async {}, &meter, permits(&a)))).collect();
        let mut run_of_c = pin!(throttled(async {}, &meter, permits(&c)));
        let of_b = permits(&b);
        let turn_of_b = of_b.turn(true).now_or_never();
        assert!(turn_of_b.is_some());
        let run = async {
            for run in &mut queue {
                assert!(run.as_mut().now_or_never().is_none(), "two runs of a company at once");
            }
            assert!(run_of_c.as_mut().now_or_never().is_none(), "three runs at once");
            tokio::task::yield_now().await;
        };
        let mut run = Box::pin(throttled(run, &meter, permits(&a)));
        assert!(run.as_mut().now_or_never().is_none());
        drop(run);
        assert!(queue.iter_mut().all(|run| run.as_mut().now_or_never().is_none()));
        assert!(run_of_c.now_or_never().is_some(), "before 50 earlier runs of the other company");
        assert!(queue.remove(0).now_or_never().is_some());
    }

    #[test]
    fn only_the_first_run_of_a_company_interrupts_that_of_another() {
        let (plugin, host, [a, b, c]) = (CpuShare::new(1), Semaphore::new(1), companies());
        let interrupts = AtomicUsize::new(0);
        let interrupt = || {
            interrupts.fetch_add(1, SeqCst);
        };
        let permits =
            |company| CpuPermits { plugin: &plugin, company, host: &host, interrupt: &interrupt };
        let [of_a, of_b, of_c] = [&a, &b, &c].map(permits);
        let running = [&of_a, &of_b].map(|permits| permits.turn(true).now_or_never());
        assert!(running.iter().all(Option::is_some));
        let mut queue = Vec::new();
        for (permits, is_first, expected) in
            [(&of_a, true, 0), (&of_c, false, 0), (&of_c, true, 0), (&of_c, true, 0)]
        {
            let mut waits = Box::pin(permits.turn(is_first));
            assert!(waits.as_mut().now_or_never().is_none());
            queue.push(waits);
            assert_eq!(interrupts.load(SeqCst), expected);
        }
        queue.clear();
        assert!(of_c.turn(true).now_or_never().is_none());
        assert_eq!(interrupts.load(SeqCst), 1);
    }

    #[test]
    fn the_queue_of_one_plugin_does_not_delay_another() {
        let (plugins, host, [a, ..]) =
            ([(); 2].map(|()| CpuShare::new(1)), Semaphore::new(1), companies());
        let [first, second] = [0, 1].map(|n| CpuPermits {
            plugin: &plugins[n],
            company: &a,
            host: &host,
            interrupt: &|| (),
        });
        let running = first.throttled().now_or_never().expect("permits are free");
        let mut queue: Vec<_> = (0..3).map(|_| Box::pin(first.throttled())).collect();
        assert!(queue.iter_mut().all(|waits| waits.as_mut().now_or_never().is_none()));
        let mut other = Box::pin(second.throttled());
        assert!(other.as_mut().now_or_never().is_none());
        drop(running);
        assert!(queue.iter_mut().all(|waits| waits.as_mut().now_or_never().is_none()));
        assert!(other.now_or_never().is_some(), "before three earlier calls of the other plugin");
    }
}
