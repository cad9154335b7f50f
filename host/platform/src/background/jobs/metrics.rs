//! Metrics of jobs, by kind.

use std::time::Duration;

use crate::telemetry::metric::*;

#[derive(Clone)]
pub struct JobMetrics {
    pub enabled: Gauge,
    runs: Family<[(&'static str, &'static str); 2], Counter>,
    duration: Histograms<Label<&'static str>>,
    lag: Histograms<Label<&'static str>>,
    running: Family<Label<&'static str>, Gauge>,
}

impl Default for JobMetrics {
    fn default() -> JobMetrics {
        JobMetrics {
            enabled: Gauge::default(),
            runs: Family::default(),
            duration: Family::new_with_constructor(wait_time_histogram),
            lag: Family::new_with_constructor(wait_time_histogram),
            running: Family::default(),
        }
    }
}

impl JobMetrics {
    pub fn register(&self, registry: &mut Registry) {
        let enabled = "1 when this host runs jobs, 0 with --no-jobs";
        registry.register("jobs_enabled", enabled, self.enabled.clone());
        registry.register("job_runs", "Job runs by outcome", self.runs.clone());
        let mut seconds = |name: &str, help: &str, metric: &Histograms<_>| {
            registry.register_with_unit(name, help, Unit::Seconds, metric.clone());
        };
        seconds("job_duration", "Duration of job runs", &self.duration);
        seconds("job_lag", "Delay between due time and start of job runs", &self.lag);
        registry.register("jobs_running", "Job runs in progress", self.running.clone());
    }

    /// Records the start of a run. `lag` is the time since the job became due.
    pub fn record_start(&self, kind: &'static str, lag: Duration) {
        self.running.get_or_create(&[("kind", kind)]).inc();
        self.lag.get_or_create(&[("kind", kind)]).observe(lag.as_secs_f64());
    }

    pub fn record_end(&self, kind: &'static str, outcome: &'static str, duration: Duration) {
        self.running.get_or_create(&[("kind", kind)]).dec();
        self.runs.get_or_create(&[("kind", kind), ("outcome", outcome)]).inc();
        self.duration.get_or_create(&[("kind", kind)]).observe(duration.as_secs_f64());
    }
}
