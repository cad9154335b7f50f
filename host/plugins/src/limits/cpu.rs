//! CPU time of calls: of the guest, and of the host on its behalf. The working thread's clock is
//! read, so that waiting and other threads do not count. Reading it is a system call, so it is read
//! at the beginning and the end of each poll of a call, and otherwise only near a limit.

use std::{
    future::{Future, poll_fn},
    pin::pin,
    sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed},
    time::Duration,
};

use rustix::time::{ClockId, clock_gettime};
use wasmtime::Engine;

/// Minimum time that a guest runs before the end of an epoch makes it yield.
const MIN_RUN: Duration = Duration::from_micros(125);

#[derive(Debug, thiserror::Error)]
#[error("the plugin exceeded its CPU budget")]
pub struct CpuExhausted;

/// Number of guests that run now, in this process.
static RUNNING: AtomicUsize = AtomicUsize::new(0);

/// Number of calls of [`interrupt_guests`].
static INTERRUPTS: AtomicU64 = AtomicU64::new(0);

/// Makes all running guests yield, however briefly they have run.
pub fn interrupt_guests(engine: &Engine) {
    INTERRUPTS.fetch_add(1, Relaxed);
    engine.increment_epoch();
}

/// Counts a running guest until it is dropped.
pub struct RunningGuest(());

impl RunningGuest {
    pub fn begin() -> RunningGuest {
        RUNNING.fetch_add(1, Relaxed);
        RunningGuest(())
    }
}

impl Drop for RunningGuest {
    fn drop(&mut self) {
        RUNNING.fetch_sub(1, Relaxed);
    }
}

pub fn guest_runs() -> bool {
    RUNNING.load(Relaxed) > 0
}

/// Measures the CPU time of a call, which several threads may poll in turn.
pub struct CpuMeter {
    /// CPU time of completed polls, in nanoseconds.
    used: AtomicU64,
    /// The thread's CPU time when the poll in progress began; `NOT_POLLED` if there is none.
    began_cpu: AtomicU64,
    /// The time when the poll in progress began.
    began: AtomicU64,
    /// The time when the guest was last resumed.
    resumed: AtomicU64,
    /// The value of [`INTERRUPTS`] at that time.
    interrupts: AtomicU64,
}

const NOT_POLLED: u64 = u64::MAX;

impl Default for CpuMeter {
    fn default() -> CpuMeter {
        let [used, began_cpu, began, resumed, interrupts] =
            [0, NOT_POLLED, 0, 0, 0].map(AtomicU64::new);
        CpuMeter { used, began_cpu, began, resumed, interrupts }
    }
}

impl CpuMeter {
    /// Counts the CPU time of all polls of a future.
    pub async fn count<F: Future>(&self, future: F) -> F::Output {
        let mut future = pin!(future);
        poll_fn(|context| {
            self.began.store(read(ClockId::Monotonic), Relaxed);
            self.began_cpu.store(read(ClockId::ThreadCPUTime), Relaxed);
            let polled = future.as_mut().poll(context);
            self.used.store(self.nanoseconds_used(), Relaxed);
            self.began_cpu.store(NOT_POLLED, Relaxed);
            polled
        })
        .await
    }

    /// Returns the CPU time, that of a poll in progress included. During a poll, call it on the
    /// thread that polls.
    pub fn used(&self) -> Duration {
        Duration::from_nanos(self.nanoseconds_used())
    }

    /// Returns whether the CPU time exceeds a limit. Call it only where `used` may be called.
    pub fn exceeds(&self, limit: Duration) -> bool {
        // Reading the elapsed time, which is an upper bound, is not a system call.
        self.may_exceed(limit) && self.used() > limit
    }

    fn may_exceed(&self, limit: Duration) -> bool {
        let elapsed = match self.began_cpu.load(Relaxed) {
            NOT_POLLED => 0,
            _ => read(ClockId::Monotonic).saturating_sub(self.began.load(Relaxed)),
        };
        Duration::from_nanos(self.used.load(Relaxed).saturating_add(elapsed)) > limit
    }

    fn nanoseconds_used(&self) -> u64 {
        let in_progress = match self.began_cpu.load(Relaxed) {
            NOT_POLLED => 0,
            began => read(ClockId::ThreadCPUTime).saturating_sub(began),
        };
        self.used.load(Relaxed).saturating_add(in_progress)
    }

    /// Notes that the guest is resumed now.
    pub fn resume_guest(&self) {
        self.resumed.store(read(ClockId::Monotonic), Relaxed);
        self.interrupts.store(INTERRUPTS.load(Relaxed), Relaxed);
    }

    /// Returns whether the guest must yield at the end of an epoch, so that other tasks and
    /// timeouts run: it has run for `MIN_RUN`, or was interrupted. Yielding is expensive, so a
    /// guest that has just been resumed continues.
    pub fn must_yield(&self) -> bool {
        let run = read(ClockId::Monotonic).saturating_sub(self.resumed.load(Relaxed));
        Duration::from_nanos(run) >= MIN_RUN
            || self.interrupts.load(Relaxed) != INTERRUPTS.load(Relaxed)
    }
}

/// Returns the time of a clock in nanoseconds.
fn read(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    let seconds = time.tv_sec.unsigned_abs();
    seconds.saturating_mul(1_000_000_000).saturating_add(time.tv_nsec.unsigned_abs())
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    fn work(time: Duration) {
        let meter = CpuMeter::default();
        meter.count(async { while meter.used() < time {} }).now_or_never();
    }

    #[test]
    fn only_work_in_polls_counts() {
        const WORK: Duration = Duration::from_millis(1);
        let meter = CpuMeter::default();
        let call = async {
            work(WORK);
            assert!(meter.used() >= WORK && meter.exceeds(WORK / 2));
            tokio::task::yield_now().await;
            work(WORK);
        };
        let mut call = Box::pin(meter.count(call));
        let mut last = Duration::ZERO;
        for done in [false, true] {
            assert_eq!(call.as_mut().now_or_never().is_some(), done);
            let used = meter.used();
            assert!(used >= last + WORK, "{used:?}");
            work(WORK * 20);
            assert_eq!(meter.used(), used, "work outside of a poll");
            assert!(meter.exceeds(used - Duration::from_nanos(1)) && !meter.exceeds(used));
            last = used;
        }
    }

    #[test]
    fn a_guest_yields_after_its_minimum_run_or_if_it_is_interrupted() {
        let (meter, engine) = (CpuMeter::default(), Engine::default());
        meter.resume_guest();
        std::thread::sleep(MIN_RUN);
        assert!(meter.must_yield());
        // The thread may lose its processor for longer than that.
        let is_continued = || {
            meter.resume_guest();
            !meter.must_yield()
        };
        assert!((0..100).any(|_| is_continued()));
        assert!((0..100).all(|_| {
            meter.resume_guest();
            interrupt_guests(&engine);
            meter.must_yield()
        }));
    }

    #[test]
    fn waiting_and_work_of_other_threads_do_not_count() {
        const ELSEWHERE: Duration = Duration::from_millis(200);
        let meter = CpuMeter::default();
        let call = async {
            let other = std::thread::spawn(|| work(ELSEWHERE));
            other.join().expect("no panic");
            assert!(!meter.exceeds(ELSEWHERE / 2));
        };
        meter.count(call).now_or_never();
        assert!(meter.used() < ELSEWHERE / 2, "{:?}", meter.used());
    }
}
