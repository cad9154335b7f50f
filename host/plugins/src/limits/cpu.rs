//! CPU time of calls: of the guest, and of the host on its behalf. The working thread's clock is
//! read, so that waiting and other threads do not count.

use std::{
    sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed},
    time::Duration,
};

use rustix::time::{ClockId, clock_gettime};
use wasmtime::Engine;

#[derive(Debug, thiserror::Error)]
#[error("the plugin exceeded its CPU budget")]
pub struct CpuExhausted;

/// Number of guests that run now, in this process.
static RUNNING: AtomicUsize = AtomicUsize::new(0);

/// Number of epochs begun so far, of all engines of this process.
static EPOCH: AtomicU64 = AtomicU64::new(0);

/// Makes all running guests yield.
pub fn begin_epoch(engine: &Engine) {
    EPOCH.fetch_add(1, Relaxed);
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

/// Measures the CPU time of one run, which several threads may poll in turn.
pub struct CpuMeter {
    /// CPU time of completed work, in nanoseconds.
    used: AtomicU64,
    /// The thread's CPU time when the work in progress began; `u64::MAX` if there is none.
    began: AtomicU64,
    /// The epoch in which it began.
    epoch: AtomicU64,
}

impl Default for CpuMeter {
    fn default() -> CpuMeter {
        CpuMeter::new(Duration::ZERO)
    }
}

impl CpuMeter {
    /// Creates a meter that starts at the CPU time of the call's earlier runs.
    pub fn new(used: Duration) -> CpuMeter {
        let [used, began, epoch] = [nanoseconds(used), u64::MAX, 0].map(AtomicU64::new);
        CpuMeter { used, began, epoch }
    }

    /// Does work and counts its CPU time.
    pub fn count<T>(&self, work: impl FnOnce() -> T) -> T {
        self.began.store(thread_time(), Relaxed);
        self.epoch.store(EPOCH.load(Relaxed), Relaxed);
        let done = work();
        self.used.fetch_add(self.in_progress(), Relaxed);
        self.began.store(u64::MAX, Relaxed);
        done
    }

    /// Returns the CPU time, work in progress included. Call it on the working thread only.
    pub fn used(&self) -> Duration {
        Duration::from_nanos(self.used.load(Relaxed).saturating_add(self.in_progress()))
    }

    /// Returns whether an epoch has begun since the work in progress began.
    pub fn is_in_new_epoch(&self) -> bool {
        self.epoch.load(Relaxed) != EPOCH.load(Relaxed)
    }

    fn in_progress(&self) -> u64 {
        match self.began.load(Relaxed) {
            u64::MAX => 0,
            began => thread_time().saturating_sub(began),
        }
    }
}

/// Does work and adds its CPU time to `used`.
pub fn count<T>(used: &mut Duration, work: impl FnOnce() -> T) -> T {
    let meter = CpuMeter::new(*used);
    let done = meter.count(work);
    *used = meter.used();
    done
}

/// Returns the CPU time of this thread in nanoseconds.
fn thread_time() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    let time = Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0));
    nanoseconds(time)
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn work(nanoseconds: u64) {
        let began = thread_time();
        while thread_time() - began < nanoseconds {}
    }

    #[test]
    fn work_outside_of_count_does_not_count() {
        let meter = CpuMeter::new(Duration::from_secs(1));
        work(1_000_000);
        assert_eq!(meter.used(), Duration::from_secs(1));
        let began = thread_time();
        let during = meter.count(|| {
            work(1_000_000);
            meter.used()
        });
        assert!(during >= Duration::from_millis(1_001));
        let after = meter.used();
        assert!(after >= during);
        assert!(after <= Duration::from_secs(1) + Duration::from_nanos(thread_time() - began));
        work(1_000_000);
        assert_eq!(meter.used(), after);
    }

    #[test]
    fn waiting_and_work_of_other_threads_do_not_count() {
        const ELSEWHERE: Duration = Duration::from_millis(200);
        let meter = CpuMeter::default();
        meter.count(|| {
            let other = std::thread::spawn(|| work(nanoseconds(ELSEWHERE)));
            other.join().expect("no panic");
        });
        assert!(meter.used() < ELSEWHERE / 2, "{:?}", meter.used());
    }
}
