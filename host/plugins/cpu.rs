//! Processor time of calls: of guests, and of what the host does on their behalf.
//!
//! It is read from the clock of the thread that does the work: neither waiting nor what other threads do counts.

use std::{
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::Duration,
};

use rustix::time::{ClockId, clock_gettime};

#[derive(Debug, thiserror::Error)]
#[error("the plugin used up its processor time")]
pub struct CpuExhausted;

/// Counts the processor time of one run, which several threads may poll, one after the other.
pub struct CpuMeter {
    /// Nanoseconds of the work that has ended.
    used: AtomicU64,
    /// What the thread had used when the work in progress began.
    began: AtomicU64,
}

impl Default for CpuMeter {
    fn default() -> CpuMeter {
        CpuMeter::new(Duration::ZERO)
    }
}

impl CpuMeter {
    /// With the time that earlier runs of the call used.
    pub fn new(used: Duration) -> CpuMeter {
        CpuMeter { used: AtomicU64::new(nanoseconds(used)), began: AtomicU64::new(u64::MAX) }
    }

    /// Does work that counts.
    pub fn count<T>(&self, work: impl FnOnce() -> T) -> T {
        self.began.store(thread_time(), Relaxed);
        let done = work();
        self.used.fetch_add(self.in_progress(), Relaxed);
        self.began.store(u64::MAX, Relaxed);
        done
    }

    /// The work in progress included; only the thread that does it may ask.
    pub fn used(&self) -> Duration {
        Duration::from_nanos(self.used.load(Relaxed).saturating_add(self.in_progress()))
    }

    fn in_progress(&self) -> u64 {
        match self.began.load(Relaxed) {
            u64::MAX => 0,
            began => thread_time().saturating_sub(began),
        }
    }
}

/// Does work, and adds the processor time that it takes.
pub fn count<T>(used: &mut Duration, work: impl FnOnce() -> T) -> T {
    let meter = CpuMeter::new(*used);
    let done = meter.count(work);
    *used = meter.used();
    done
}

/// Processor time of this thread since it began, in nanoseconds.
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
    fn what_is_done_outside_does_not_count() {
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
    fn neither_waiting_nor_what_another_thread_does_counts() {
        const ELSEWHERE: Duration = Duration::from_millis(200);
        let meter = CpuMeter::default();
        meter.count(|| {
            let other = std::thread::spawn(|| work(nanoseconds(ELSEWHERE)));
            other.join().expect("no panic");
        });
        assert!(meter.used() < ELSEWHERE / 2, "{:?}", meter.used());
    }
}
