//! Metrics of plugin calls by plugin, version, digest and function.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError, RwLock},
    time::Duration,
};

use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram},
    registry::{Registry, Unit},
};
use tracing::{Span, field::Empty, info_span};

use crate::statistics::CallStatistics;
use tollhouse_platform::telemetry::{
    metric::{Histograms, Label, wait_time_histogram, work_time_histogram},
    spans::{self, SPAN_TARGET},
};

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct VersionLabels {
    plugin: Arc<str>,
    version: Arc<str>,
    digest: Arc<str>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct FunctionLabels {
    #[prometheus(flatten)]
    version: VersionLabels,
    function: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OutcomeLabels {
    #[prometheus(flatten)]
    function: FunctionLabels,
    outcome: &'static str,
}

/// The outcome of a call that returned a result.
pub const OK: &str = "ok";
/// The outcome of a call that exceeded its time limit.
pub const TIMED_OUT: &str = "timed_out";
/// All outcomes: `other` is a trap, an exceeded limit, or a fault of unknown cause.
pub const OUTCOMES: [&str; 8] =
    [OK, "invalid", "refused", "not_found", "unavailable", "misconfigured", "other", TIMED_OUT];

#[derive(Clone, Copy, Debug)]
pub struct CallMeasurements {
    /// [`OK`], [`TIMED_OUT`], or the category of the fault.
    pub outcome: &'static str,
    /// The call's effect at the provider is unknown.
    pub unknown: bool,
    pub duration: Duration,
    /// CPU time of the guest, and of the host on its behalf.
    pub cpu: Duration,
    pub peak_memory_bytes: usize,
    pub runs: u32,
}

/// Metrics of all plugins of a host.
#[derive(Clone)]
pub struct PluginMetrics {
    calls: Family<OutcomeLabels, Counter>,
    unknown: Family<FunctionLabels, Counter>,
    in_flight: Family<VersionLabels, Gauge>,
    duration: Histograms<FunctionLabels>,
    cpu: Histograms<FunctionLabels>,
    memory: Histograms<FunctionLabels>,
    runs: Family<FunctionLabels, Counter>,
    instance_wait: Histogram,
    cache: Family<Label<&'static str>, Counter>,
    /// Statistics of each version, including versions that were replaced.
    statistics: Arc<Mutex<HashMap<VersionLabels, Arc<CallStatistics>>>>,
}

impl Default for PluginMetrics {
    fn default() -> PluginMetrics {
        let memory = || Histogram::new((0..10).map(|n| f64::from(128 << n) * 1_024.0));
        PluginMetrics {
            calls: Family::default(),
            unknown: Family::default(),
            in_flight: Family::default(),
            duration: Family::new_with_constructor(wait_time_histogram),
            cpu: Family::new_with_constructor(work_time_histogram),
            memory: Family::new_with_constructor(memory),
            runs: Family::default(),
            instance_wait: work_time_histogram(),
            cache: Family::default(),
            statistics: Arc::default(),
        }
    }
}

impl PluginMetrics {
    pub fn register(&self, registry: &mut Registry) {
        let mut with_unit = |name: &str, help: &str, unit, metric: &Histograms<FunctionLabels>| {
            registry.register_with_unit(name, help, unit, metric.clone());
        };
        let duration_help = "Duration of calls, including waits";
        with_unit("plugin_call_duration", duration_help, Unit::Seconds, &self.duration);
        with_unit("plugin_call_cpu", "CPU time of calls", Unit::Seconds, &self.cpu);
        with_unit("plugin_call_memory", "Peak memory of calls", Unit::Bytes, &self.memory);
        registry.register("plugin_calls", "Calls by outcome", self.calls.clone());
        let help = "Calls with an unknown outcome";
        registry.register("plugin_calls_unknown", help, self.unknown.clone());
        let help = "Calls in flight; a replaced version is drained at 0";
        registry.register("plugin_calls_in_flight", help, self.in_flight.clone());
        let help = "Runs; a call with n requests takes n + 1";
        registry.register("plugin_runs", help, self.runs.clone());
        let (help, wait) =
            ("Wait for a free instance, of runs that had to wait", self.instance_wait.clone());
        registry.register_with_unit("plugin_instance_wait", help, Unit::Seconds, wait);
        registry.register("plugin_cache_lookups", "Cache lookups of plugins", self.cache.clone());
    }

    pub fn observe_instance_wait(&self, waited: Duration) {
        self.instance_wait.observe(waited.as_secs_f64());
    }

    pub fn count_cache_lookup(&self, found: bool) {
        let result = if found { "hit" } else { "miss" };
        self.cache.get_or_create(&[("result", result)]).inc();
    }

    /// Returns the meter of one version. `digest` holds its first digits.
    pub fn plugin(&self, name: Arc<str>, version: &str, digest: &str) -> PluginMeter {
        let (version, digest) = (version.into(), digest.into());
        let labels = VersionLabels { plugin: name, version, digest };
        let mut versions = self.statistics.lock().unwrap_or_else(PoisonError::into_inner);
        let statistics = versions.entry(labels.clone()).or_default().clone();
        drop(versions);
        PluginMeter { metrics: self.clone(), labels, functions: RwLock::default(), statistics }
    }
}

/// Metrics of one version. Its series begin with the first call.
pub struct PluginMeter {
    metrics: PluginMetrics,
    labels: VersionLabels,
    functions: RwLock<HashMap<&'static str, FunctionMeter>>,
    pub statistics: Arc<CallStatistics>,
}

/// Metrics of one function. Looking them up by their labels takes longer than counting a call.
struct FunctionMeter {
    /// In the order of [`OUTCOMES`].
    calls: [Counter; OUTCOMES.len()],
    unknown: Counter,
    duration: Histogram,
    cpu: Histogram,
    memory: Histogram,
    runs: Counter,
}

/// Counts a call as in flight until it is dropped.
pub struct InFlightCall(Gauge);

impl Drop for InFlightCall {
    fn drop(&mut self) {
        self.0.dec();
    }
}

impl PluginMeter {
    #[must_use]
    pub fn begin_call(&self) -> InFlightCall {
        let gauge = self.metrics.in_flight.get_or_create_owned(&self.labels);
        gauge.inc();
        InFlightCall(gauge)
    }

    pub fn version(&self) -> &str {
        &self.labels.version
    }

    pub fn observe(&self, function: &'static str, call: &CallMeasurements) {
        self.statistics.observe(call);
        let known = self.functions.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(meter) = known.get(function) {
            return meter.observe(call);
        }
        drop(known);
        let meter = FunctionMeter::new(&self.metrics, self.labels.clone(), function);
        meter.observe(call);
        self.functions.write().unwrap_or_else(PoisonError::into_inner).insert(function, meter);
    }
}

impl FunctionMeter {
    fn new(
        metrics: &PluginMetrics,
        version: VersionLabels,
        function: &'static str,
    ) -> FunctionMeter {
        let function = FunctionLabels { version, function };
        let calls = OUTCOMES.map(|outcome| {
            let labels = OutcomeLabels { function: function.clone(), outcome };
            metrics.calls.get_or_create_owned(&labels)
        });
        FunctionMeter {
            calls,
            unknown: metrics.unknown.get_or_create_owned(&function),
            duration: metrics.duration.get_or_create_owned(&function),
            cpu: metrics.cpu.get_or_create_owned(&function),
            memory: metrics.memory.get_or_create_owned(&function),
            runs: metrics.runs.get_or_create_owned(&function),
        }
    }

    fn observe(&self, call: &CallMeasurements) {
        for (outcome, calls) in OUTCOMES.iter().zip(&self.calls) {
            calls.inc_by((*outcome == call.outcome).into());
        }
        self.unknown.inc_by(call.unknown.into());
        self.duration.observe(call.duration.as_secs_f64());
        self.cpu.observe(call.cpu.as_secs_f64());
        self.memory.observe(call.peak_memory_bytes as f64);
        self.runs.inc_by(call.runs.into());
    }
}

/// Creates the span of a call, which covers all runs.
pub fn call_span(plugin: &str, version: &str, digest: &str, function: &str) -> Span {
    info_span!(
        target: SPAN_TARGET,
        "plugin call",
        otel.name = format!("{plugin} {function}"),
        otel.status_code = Empty,
        plugin.name = plugin,
        plugin.version = version,
        plugin.digest = digest,
        plugin.function = function,
        plugin.outcome = Empty,
        plugin.runs = Empty,
        plugin.requests = Empty,
        plugin.cpu_us = Empty,
    )
}

pub fn record_call(span: &Span, call: &CallMeasurements, requests: usize) {
    if span.is_disabled() {
        return;
    }
    span.record("plugin.outcome", call.outcome);
    span.record("plugin.runs", call.runs);
    span.record("plugin.requests", requests);
    span.record("plugin.cpu_us", call.cpu.as_micros() as u64);
    if call.outcome != OK {
        spans::mark_failed(span);
    }
}
