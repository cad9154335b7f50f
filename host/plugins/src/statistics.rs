//! Calls of a plugin version since the start of this host, for operators. Metrics have the same
//! numbers for monitoring, but cannot be read by the host.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::metrics::{CallMeasurements, OUTCOMES, TIMED_OUT};
use crate::prelude::*;

/// Outcomes that count as failures: the others are answers, for example a declined card.
const FAILURES: [&str; 4] = ["unavailable", "misconfigured", "other", TIMED_OUT];

/// Returns whether an outcome counts as a failure of the plugin or its provider.
pub fn is_failure(outcome: &str) -> bool {
    FAILURES.contains(&outcome)
}

/// Linear buckets per power of two, so that a percentile is at most 6 % off.
const SUB_BUCKETS: u64 = 8;
const SUB_BITS: u32 = SUB_BUCKETS.trailing_zeros();
/// Buckets up to about 4 minutes; calls are limited to less.
const BUCKETS: usize = 208;

/// Counters of one version.
pub struct CallStatistics {
    /// In the order of [`OUTCOMES`].
    outcomes: [AtomicU64; OUTCOMES.len()],
    unknown: AtomicU64,
    /// Durations in microseconds.
    durations: [AtomicU64; BUCKETS],
}

impl Default for CallStatistics {
    fn default() -> CallStatistics {
        CallStatistics {
            outcomes: Default::default(),
            unknown: AtomicU64::default(),
            durations: [const { AtomicU64::new(0) }; BUCKETS],
        }
    }
}

/// Calls of a version on this host since its start.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "PluginCalls")]
pub struct CallSummary {
    pub calls: u64,
    /// Calls with the outcome `unavailable`, `misconfigured`, `other` or `timed_out`.
    pub failed: u64,
    /// Calls whose effect at the provider is unknown.
    pub unknown: u64,
    /// Number of calls by outcome, as in recordings, without zeros.
    pub outcomes: BTreeMap<&'static str, u64>,
    /// Median duration in milliseconds, including waits; `null` without calls.
    pub p50_ms: Option<f64>,
    /// Duration in milliseconds that 99 % of the calls did not exceed.
    pub p99_ms: Option<f64>,
}

impl CallStatistics {
    pub fn observe(&self, call: &CallMeasurements) {
        for (outcome, count) in OUTCOMES.iter().zip(&self.outcomes) {
            count.fetch_add((*outcome == call.outcome).into(), Ordering::Relaxed);
        }
        self.unknown.fetch_add(call.unknown.into(), Ordering::Relaxed);
        let us = u64::try_from(call.duration.as_micros()).unwrap_or(u64::MAX);
        self.durations[bucket(us)].fetch_add(1, Ordering::Relaxed);
    }

    pub fn summary(&self) -> CallSummary {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let counts = OUTCOMES.into_iter().zip(self.outcomes.iter().map(read));
        let outcomes: BTreeMap<_, _> = counts.filter(|(_, count)| *count > 0).collect();
        let durations: Vec<u64> = self.durations.iter().map(read).collect();
        let of = |outcome: &&str| outcomes.get(outcome).copied().unwrap_or_default();
        CallSummary {
            calls: outcomes.values().sum(),
            failed: FAILURES.iter().map(of).sum(),
            unknown: read(&self.unknown),
            p50_ms: percentile_ms(&durations, 50),
            p99_ms: percentile_ms(&durations, 99),
            outcomes,
        }
    }
}

/// Returns the bucket of a duration: each power of two has [`SUB_BUCKETS`].
fn bucket(us: u64) -> usize {
    if us < SUB_BUCKETS {
        return us as usize;
    }
    let shift = us.ilog2() - SUB_BITS;
    let bucket = u64::from(shift) * SUB_BUCKETS + (us >> shift);
    (bucket as usize).min(BUCKETS - 1)
}

/// Returns the middle of a bucket in microseconds.
fn middle_us(bucket: usize) -> f64 {
    let bucket = bucket as u64;
    if bucket < SUB_BUCKETS {
        return bucket as f64 + 0.5;
    }
    let shift = bucket / SUB_BUCKETS - 1;
    let lowest = (bucket - shift * SUB_BUCKETS) << shift;
    lowest as f64 + (1_u64 << shift) as f64 / 2.0
}

/// Returns the duration that this percentage did not exceed; `None` without calls.
fn percentile_ms(durations: &[u64], percent: u64) -> Option<f64> {
    let total: u64 = durations.iter().sum();
    let rank = (total * percent).div_ceil(100);
    let mut seen = 0;
    let reaches_rank = |count: &u64| {
        seen += count;
        seen >= rank
    };
    let bucket = durations.iter().position(reaches_rank).filter(|_| total > 0)?;
    Some((middle_us(bucket) / 10.0).round() / 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(outcome: &'static str, duration: Duration) -> CallMeasurements {
        let cpu = Duration::ZERO;
        CallMeasurements { outcome, unknown: false, duration, cpu, peak_memory_bytes: 0, runs: 1 }
    }

    #[test]
    fn buckets_cover_all_durations_within_six_percent() {
        for us in (0..1_000).chain((1_000..200_000_000).step_by(99_991)) {
            let middle = middle_us(bucket(us));
            assert!((middle - us as f64).abs() <= 0.5 + us as f64 * 0.0625, "{us}: {middle}");
        }
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn percentiles_and_failures_are_those_of_the_calls() {
        let statistics = CallStatistics::default();
        assert_eq!((statistics.summary().calls, statistics.summary().p50_ms), (0, None));
        for _ in 0..98 {
            statistics.observe(&call("ok", Duration::from_millis(10)));
        }
        statistics.observe(&call("refused", Duration::from_millis(10)));
        statistics.observe(&call(TIMED_OUT, Duration::from_secs(30)));
        let summary = statistics.summary();
        assert_eq!((summary.calls, summary.failed), (100, 1));
        assert_eq!(summary.outcomes, [("ok", 98), ("refused", 1), (TIMED_OUT, 1)].into());
        let near = |ms: Option<f64>, expected: f64| {
            ms.is_some_and(|ms| (ms - expected).abs() <= expected * 0.0625)
        };
        assert!(near(summary.p50_ms, 10.0) && near(summary.p99_ms, 10.0), "{summary:?}");
        statistics.observe(&call(TIMED_OUT, Duration::from_secs(30)));
        assert!(near(statistics.summary().p99_ms, 30_000.0));
    }
}
