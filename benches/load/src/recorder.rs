//! Latencies and errors of each step, within one measurement.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use hdrhistogram::Histogram;
use strum::{EnumIter, IntoEnumIterator, IntoStaticStr};

use crate::client::Failure;

/// A request, or an effect that a webhook reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, EnumIter, IntoStaticStr)]
pub enum Step {
    #[strum(serialize = "payment initialize")]
    Initialize,
    #[strum(serialize = "payment page (simulator)")]
    Page,
    #[strum(serialize = "payment settled")]
    Settled,
    #[strum(serialize = "OTP send")]
    OtpSend,
    #[strum(serialize = "OTP verify")]
    OtpVerify,
    #[strum(serialize = "identity lookup")]
    Lookup,
    #[strum(serialize = "user create")]
    UserCreate,
    #[strum(serialize = "user fetch")]
    UserFetch,
    #[strum(serialize = "payment fetch")]
    PaymentFetch,
    #[strum(serialize = "payment list")]
    PaymentList,
    #[strum(serialize = "user list")]
    UserList,
    #[strum(serialize = "repayment by card")]
    Repayment,
    #[strum(serialize = "repayment settled")]
    Repaid,
    #[strum(serialize = "repayment in cash")]
    Record,
    #[strum(serialize = "repayment reported")]
    Recorded,
}

impl Step {
    /// Returns whether the step starts on the schedule. The others follow from a response.
    pub fn is_scheduled(self) -> bool {
        !self.is_effect() && !matches!(self, Step::Page | Step::OtpVerify | Step::UserFetch)
    }

    /// Returns whether the step ends with the arrival of an event.
    pub fn is_effect(self) -> bool {
        matches!(self, Step::Settled | Step::Repaid | Step::Recorded)
    }
}

/// Failures of one kind.
#[derive(Clone, Debug)]
pub struct FailureCount {
    pub count: u64,
    /// The first of them.
    pub example: String,
}

#[derive(Clone, Debug)]
pub struct StepRecord {
    pub correct: u64,
    /// Microseconds of correct responses, and of those that timed out.
    pub latency: Histogram<u64>,
    pub failures: BTreeMap<String, FailureCount>,
    /// From the beginning of the measurement to the last correct response.
    pub last: Duration,
}

/// Returns a histogram in microseconds: three significant digits, up to ten minutes.
pub fn new_histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, 600_000_000, 3).expect("valid bounds")
}

/// Records a latency. A longer one than the histogram's maximum counts as the maximum.
pub fn add(histogram: &mut Histogram<u64>, latency: Duration) {
    histogram.saturating_record(u64::try_from(latency.as_micros()).unwrap_or(u64::MAX));
}

pub struct Recorder {
    began: Instant,
    steps: Vec<Mutex<StepRecord>>,
    /// Delays of operations between their intended and their actual start.
    delays: Mutex<Histogram<u64>>,
}

impl Recorder {
    pub fn new(began: Instant) -> Recorder {
        let empty = || StepRecord {
            correct: 0,
            latency: new_histogram(),
            failures: BTreeMap::new(),
            last: Duration::ZERO,
        };
        let steps = Step::iter().map(|_| Mutex::new(empty())).collect();
        Recorder { began, steps, delays: Mutex::new(new_histogram()) }
    }

    /// Records the end of a step that should have started at `intended`.
    pub fn record<T>(&self, step: Step, intended: Instant, result: &Result<T, Failure>) {
        let now = Instant::now();
        let mut record = locked(&self.steps[step as usize]);
        if matches!(result, Ok(_) | Err(Failure::TimedOut)) {
            add(&mut record.latency, now.saturating_duration_since(intended));
        }
        match result {
            Ok(_) => {
                record.correct += 1;
                record.last = now.saturating_duration_since(self.began);
            }
            Err(failure) => {
                let new = || FailureCount { count: 0, example: failure.to_string() };
                record.failures.entry(failure.label()).or_insert_with(new).count += 1;
            }
        }
    }

    /// Records that an operation starts now.
    pub fn record_start(&self, intended: Instant) {
        add(&mut locked(&self.delays), intended.elapsed());
    }

    pub fn delays(&self) -> Histogram<u64> {
        locked(&self.delays).clone()
    }

    /// Returns the steps that occurred.
    pub fn steps(&self) -> Vec<(Step, StepRecord)> {
        let records = self.steps.iter().map(|record| locked(record).clone());
        let steps = Step::iter().zip(records);
        steps.filter(|(_, record)| record.correct > 0 || !record.failures.is_empty()).collect()
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn only_step(recorder: &Recorder) -> StepRecord {
        let mut steps = recorder.steps();
        assert_eq!(steps.len(), 1);
        steps.remove(0).1
    }

    #[test]
    fn latencies_count_from_the_intended_start() {
        let now = Instant::now();
        let recorder = Recorder::new(now);
        let intended = now.checked_sub(Duration::from_secs(5)).unwrap();
        recorder.record(Step::OtpSend, intended, &Ok(()));
        recorder.record_start(intended);
        let record = only_step(&recorder);
        assert_eq!((record.correct, record.latency.len()), (1, 1));
        assert!(record.latency.min() >= 4_990_000, "{} us", record.latency.min());
        assert!(recorder.delays().min() >= 4_990_000);
    }

    #[test]
    fn percentiles_contain_correct_and_late_responses_only() {
        let now = Instant::now();
        let recorder = Recorder::new(now);
        recorder.record(Step::Lookup, now, &Ok(()));
        let failures = [
            Failure::TimedOut,
            Failure::Dropped,
            Failure::Status(hyper::StatusCode::BAD_GATEWAY, "first".to_owned()),
            Failure::Status(hyper::StatusCode::BAD_GATEWAY, "second".to_owned()),
        ];
        for failure in failures {
            recorder.record(Step::Lookup, now, &Err::<(), _>(failure));
        }
        let record = only_step(&recorder);
        assert_eq!((record.correct, record.latency.len()), (1, 2));
        let counts = record.failures.iter().map(|(label, found)| (label.as_str(), found.count));
        assert_eq!(counts.collect::<Vec<_>>(), [("502", 2), ("dropped", 1), ("timeout", 1)]);
        assert_eq!(record.failures["502"].example, "first");
    }

    #[test]
    fn a_latency_beyond_the_histogram_counts_as_its_greatest() {
        let mut histogram = new_histogram();
        add(&mut histogram, Duration::from_secs(86_400));
        assert_eq!(histogram.len(), 1);
        assert!(histogram.max() >= 600_000_000);
    }

    #[test]
    fn every_operation_begins_with_a_scheduled_step() {
        let names = |keep: fn(Step) -> bool| {
            let kept = Step::iter().filter(|step| keep(*step)).map(<&str>::from);
            kept.collect::<Vec<_>>()
        };
        assert_eq!(
            names(|step| !step.is_scheduled()),
            [
                "payment page (simulator)", "payment settled", "OTP verify", "user fetch",
                "repayment settled", "repayment reported",
            ]
        );
    }
}
