//! Measurements, as text for people and as JSON for programs.

use std::{collections::BTreeMap, fmt::Write, time::Duration};

use hdrhistogram::Histogram;
use serde::Serialize;

use crate::{
    Options,
    phase::Sample,
    recorder::{Recorder, Step, StepRecord, new_histogram},
};

/// The share of operations that may fail at a sustainable rate.
const MAX_ERROR_SHARE: f64 = 0.001;
/// Multiple of the limit that is permitted for effects, because they pass several queues.
const EFFECT_LIMIT_FACTOR: f64 = 10.0;

#[derive(Debug, Serialize)]
pub struct Report {
    pub hosts: usize,
    pub companies: usize,
    pub hanging_endpoints: usize,
    pub failing_endpoints: usize,
    pub arrivals: String,
    pub seed: u64,
    pub mix: String,
    /// The result of `--search`.
    pub found: Option<Found>,
    /// In the order in which they ran. After a search, the last one is at half of the found rate.
    pub phases: Vec<Phase>,
}

#[derive(Debug, Serialize)]
pub struct Found {
    pub greatest_rate_per_s: f64,
    pub limit_ms: f64,
}

/// The measurement at one rate.
#[derive(Debug, Serialize)]
pub struct Phase {
    /// Operations started per second, as intended.
    pub rate_per_s: f64,
    pub duration_s: f64,
    /// Set by a search.
    pub sustained: Option<bool>,
    /// All steps that start on the schedule.
    pub scheduled: Percentiles,
    /// All effects: settlements and events.
    pub effects: Percentiles,
    pub errors: u64,
    pub steps: Vec<StepReport>,
    /// Events that arrived at healthy endpoints.
    pub events_per_s: f64,
    pub host: HostReport,
    pub generator: GeneratorReport,
}

#[derive(Debug, Serialize)]
pub struct StepReport {
    pub name: &'static str,
    pub correct: u64,
    /// Correct ones per second, until the last of them.
    pub rate_per_s: f64,
    #[serde(flatten)]
    pub latency: Percentiles,
    pub errors: BTreeMap<String, ErrorReport>,
}

#[derive(Debug, Serialize)]
pub struct ErrorReport {
    pub count: u64,
    pub example: String,
}

#[derive(Clone, Copy, Debug, Serialize)]
pub struct Percentiles {
    pub p50_ms: f64,
    pub p99_ms: f64,
    pub p999_ms: f64,
    pub max_ms: f64,
}

/// Metrics of the hosts, for the time of the measurement.
#[derive(Debug, Serialize)]
pub struct HostReport {
    /// CPU time per second, of all threads of all hosts.
    pub cores: f64,
    pub cpu_ms_per_operation: f64,
    pub upstream_mean_ms: Option<f64>,
    /// Wall time of the host in one `payment/initialize`, without its request to the provider.
    pub initialize_own_mean_ms: Option<f64>,
    /// p99 from the intended start, minus the mean time of upstream requests.
    pub initialize_own_p99_ms: Option<f64>,
}

/// The load generator's own contribution to the latencies.
#[derive(Debug, Serialize)]
pub struct GeneratorReport {
    pub cores: Option<f64>,
    /// Delays between intended and actual start.
    pub start_delay: Percentiles,
}

impl Report {
    pub(crate) fn new(options: &Options, hosts: usize) -> Report {
        Report {
            hosts,
            companies: options.companies,
            hanging_endpoints: options.hanging,
            failing_endpoints: options.failing,
            arrivals: format!("{:?}", options.arrivals).to_lowercase(),
            seed: options.seed,
            mix: options.mix().to_string(),
            found: None,
            phases: Vec::new(),
        }
    }

    /// Returns the number of failed steps in the last measurement.
    #[must_use]
    pub fn errors(&self) -> u64 {
        self.phases.last().map_or(0, |phase| phase.errors)
    }

    /// Returns the last measurement as a table.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::new();
        if let Some(found) = &self.found {
            let (rate, limit) = (found.greatest_rate_per_s, found.limit_ms);
            let _ =
                writeln!(text, "Greatest sustainable rate: {rate:.0} per second (p99 {limit} ms)");
        }
        let Some(phase) = self.phases.last() else { return text };
        let (hosts, companies) = (plural(self.hosts, "host"), self.companies);
        let _ = writeln!(
            text,
            "{:.0} operations per second ({}) for {} s, {companies} companies, {hosts}\n{}\n",
            phase.rate_per_s, self.arrivals, phase.duration_s, self.mix,
        );
        phase.write_to(&mut text);
        text
    }
}

fn plural(count: usize, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

impl Phase {
    pub(crate) fn new(
        rate: f64,
        duration: Duration,
        recorder: &Recorder,
        before: &Sample,
        after: &Sample,
    ) -> Phase {
        let steps = recorder.steps();
        let merged = |which: fn(Step) -> bool| {
            let mut sum = new_histogram();
            for (_, record) in steps.iter().filter(|(step, _)| which(*step)) {
                sum.add(&record.latency).expect("histograms have the same bounds");
            }
            Percentiles::of(&sum)
        };
        let count = |record: &StepRecord| -> u64 {
            record.failures.values().map(|found| found.count).sum()
        };
        let started = steps.iter().filter(|(step, _)| step.is_scheduled());
        let started: u64 = started.map(|(_, record)| record.correct + count(record)).sum();
        let seconds = after.at.duration_since(before.at).as_secs_f64();
        let cores = |before: Option<f64>, after| Some((after? - before?) / seconds);
        let initialize = steps.iter().find(|(step, _)| *step == Step::Initialize);
        Phase {
            rate_per_s: rate,
            duration_s: duration.as_secs_f64(),
            sustained: None,
            scheduled: merged(Step::is_scheduled),
            effects: merged(Step::is_effect),
            errors: steps.iter().map(|(_, record)| count(record)).sum(),
            events_per_s: (after.events - before.events) as f64 / seconds,
            host: HostReport::new(before, after, seconds, started, initialize.map(|(_, r)| r)),
            generator: GeneratorReport {
                cores: cores(before.own_cpu_s, after.own_cpu_s),
                start_delay: Percentiles::of(&recorder.delays()),
            },
            steps: steps.iter().map(|found| StepReport::new(found, duration)).collect(),
        }
    }

    /// Returns whether the share of errors and the p99 latencies are within their limits.
    pub(crate) fn is_within(&self, limit_ms: f64) -> bool {
        let correct: u64 = self.steps.iter().map(|step| step.correct).sum();
        let errors = self.errors as f64;
        errors <= MAX_ERROR_SHARE * (correct as f64 + errors)
            && self.scheduled.p99_ms <= limit_ms
            && self.effects.p99_ms <= EFFECT_LIMIT_FACTOR * limit_ms
    }

    /// Returns a one-line summary.
    pub(crate) fn summary(&self) -> String {
        format!(
            "{:.0}/s: p99 {:.1} ms, of effects {:.1} ms, {} errors{}",
            self.rate_per_s,
            self.scheduled.p99_ms,
            self.effects.p99_ms,
            self.errors,
            if self.sustained == Some(false) { ": not sustained" } else { "" },
        )
    }

    fn write_to(&self, text: &mut String) {
        let head = ["", "correct", "per s", "p50 ms", "p99 ms", "p99.9 ms", "max ms", "errors"];
        let mut rows = vec![head.map(str::to_owned)];
        for step in &self.steps {
            let Percentiles { p50_ms, p99_ms, p999_ms, max_ms } = step.latency;
            let [p50, p99, p999, max] = [p50_ms, p99_ms, p999_ms, max_ms].map(ms);
            let (correct, rate) = (step.correct.to_string(), format!("{:.1}", step.rate_per_s));
            let errors =
                step.errors.iter().map(|(label, found)| format!("{} {label}", found.count));
            let errors = errors.collect::<Vec<_>>().join(", ");
            rows.push([step.name.to_owned(), correct, rate, p50, p99, p999, max, errors]);
        }
        text.push_str(&align(&rows));
        for step in &self.steps {
            for (label, found) in &step.errors {
                let _ = writeln!(text, "{}, {label}: {}", step.name, found.example);
            }
        }
        let _ = writeln!(text, "\nEvents that arrived: {:.1} per second", self.events_per_s);
        let host = &self.host;
        let _ = writeln!(
            text,
            "Hosts: {:.2} cores, {:.2} ms of CPU time per operation",
            host.cores, host.cpu_ms_per_operation,
        );
        let own = [host.initialize_own_mean_ms, host.initialize_own_p99_ms];
        if let ([Some(mean), Some(p99)], Some(upstream)) = (own, host.upstream_mean_ms) {
            let (mean, p99, upstream) = (ms(mean), ms(p99), ms(upstream));
            let _ = writeln!(
                text,
                "Own time of payment initialize: mean {mean} ms, p99 {p99} ms, beside {upstream} ms \
                 of upstreams",
            );
        }
        let delay = &self.generator.start_delay;
        let _ = write!(
            text,
            "Load generator: operations start {} ms late (p50), {} ms (p99)",
            ms(delay.p50_ms),
            ms(delay.p99_ms),
        );
        let _ = match self.generator.cores {
            Some(cores) => writeln!(text, ", {cores:.2} cores"),
            None => writeln!(text),
        };
    }
}

impl StepReport {
    fn new((step, record): &(Step, StepRecord), duration: Duration) -> StepReport {
        let report = |(label, found): (&String, &crate::recorder::FailureCount)| {
            let (count, example) = (found.count, found.example.clone());
            (label.clone(), ErrorReport { count, example })
        };
        StepReport {
            name: step.into(),
            correct: record.correct,
            rate_per_s: record.correct as f64 / record.last.max(duration).as_secs_f64(),
            latency: Percentiles::of(&record.latency),
            errors: record.failures.iter().map(report).collect(),
        }
    }
}

impl HostReport {
    fn new(
        before: &Sample,
        after: &Sample,
        seconds: f64,
        operations: u64,
        initialize: Option<&StepRecord>,
    ) -> HostReport {
        let spent = after.hosts - before.hosts;
        let mean_ms = |sum: f64, count: f64| (count > 0.0).then(|| sum / count * 1e3);
        let upstream_mean_ms = mean_ms(spent.upstream_s, spent.upstream_requests);
        let without_upstream = |ms: f64| Some((ms - upstream_mean_ms?).max(0.0));
        let p99 = initialize.map(|record| Percentiles::of(&record.latency).p99_ms);
        HostReport {
            cores: spent.cpu_s / seconds,
            cpu_ms_per_operation: mean_ms(spent.cpu_s, operations as f64).unwrap_or(0.0),
            upstream_mean_ms,
            initialize_own_mean_ms: mean_ms(spent.initialize_s, spent.initialized)
                .and_then(without_upstream),
            initialize_own_p99_ms: p99.and_then(without_upstream),
        }
    }
}

impl Percentiles {
    fn of(microseconds: &Histogram<u64>) -> Percentiles {
        let ms = |quantile| microseconds.value_at_quantile(quantile) as f64 / 1e3;
        Percentiles {
            p50_ms: ms(0.5),
            p99_ms: ms(0.99),
            p999_ms: ms(0.999),
            max_ms: microseconds.max() as f64 / 1e3,
        }
    }
}

/// Formats with two decimals, or fewer from 10 on.
fn ms(value: f64) -> String {
    match value {
        100.0.. => format!("{value:.0}"),
        10.0.. => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

/// Aligns columns: the first and the last on the left, numbers on the right.
fn align<const COLUMNS: usize>(rows: &[[String; COLUMNS]]) -> String {
    let width = |n: usize| rows.iter().map(|row| row[n].len()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..COLUMNS).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (n, (cell, width)) in row.iter().zip(&widths).enumerate() {
            let _ = match n {
                0 => write!(line, "{cell:width$}"),
                _ if n == COLUMNS - 1 => write!(line, "  {cell}"),
                _ => write!(line, "  {cell:>width$}"),
            };
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned() {
        let rows = [["", "n", "errors"], ["one", "1", ""], ["two", "22", "1 503"]];
        let text = align(&rows.map(|row| row.map(str::to_owned)));
        assert_eq!(text, "      n  errors\none   1\ntwo  22  1 503\n");
    }

    #[test]
    fn percentiles_are_milliseconds() {
        let mut histogram = new_histogram();
        for us in 1..=1_000 {
            histogram.saturating_record(us * 100);
        }
        let Percentiles { p50_ms, p99_ms, p999_ms, max_ms } = Percentiles::of(&histogram);
        let close = |value: f64, wanted: f64| (value / wanted - 1.0).abs() < 0.002;
        assert!(close(p50_ms, 50.0), "{p50_ms}");
        assert!(close(p99_ms, 99.0), "{p99_ms}");
        assert!(close(p999_ms, 99.9), "{p999_ms}");
        assert!(close(max_ms, 100.0), "{max_ms}");
    }
}
