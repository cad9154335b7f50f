//! Metrics of plugin calls by plugin, version, digest and function.

use std::{
    collections::HashMap,
    sync::{Arc, OnceLock, PoisonError, RwLock},
    time::Duration,
};

use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram},
    registry::{Registry, Unit},
};

use tracing::{Span, field::Empty, info_span};

use tollhouse_platform::telemetry::{
    metric::{Histograms, Label, wait_time_histogram, work_time_histogram},
    spans::{self, SPAN_TARGET},
};

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct FunctionLabels {
    plugin: Arc<str>,
    version: Arc<str>,
    digest: Arc<str>,
    function: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct VersionLabels {
    plugin: Arc<str>,
    version: Arc<str>,
    digest: Arc<str>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OutcomeLabels {
    plugin: Arc<str>,
    version: Arc<str>,
    digest: Arc<str>,
    function: &'static str,
    outcome: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallOutcome {
    Ok,
    Invalid,
    Refused,
    NotFound,
    Unavailable,
    Misconfigured,
    /// A trap, an exceeded limit, or a fault of unknown cause.
    Other,
    TimedOut,
}

const OUTCOMES: [(CallOutcome, &str); 8] = [
    (CallOutcome::Ok, "ok"),
    (CallOutcome::Invalid, "invalid"),
    (CallOutcome::Refused, "refused"),
    (CallOutcome::NotFound, "not_found"),
    (CallOutcome::Unavailable, "unavailable"),
    (CallOutcome::Misconfigured, "misconfigured"),
    (CallOutcome::Other, "other"),
    (CallOutcome::TimedOut, "timed_out"),
];

impl CallOutcome {
    #[must_use]
    pub fn name(self) -> &'static str {
        OUTCOMES[self as usize].1
    }
}

#[derive(Clone, Copy, Debug)]
pub struct CallMeasurements {
    pub outcome: CallOutcome,
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
    slot_wait: Histogram,
    cache: Family<Label<&'static str>, Counter>,
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
            slot_wait: work_time_histogram(),
            cache: Family::default(),
        }
    }
}

impl PluginMetrics {
    pub fn register(&self, registry: &mut Registry) {
        let mut seconds = |name: &str, help: &str, metric: &Histograms<FunctionLabels>| {
            registry.register_with_unit(name, help, Unit::Seconds, metric.clone());
        };
        seconds("plugin_call_duration", "Duration of calls, including waits", &self.duration);
        seconds("plugin_call_cpu", "CPU time of calls", &self.cpu);
        registry.register_with_unit(
            "plugin_call_memory",
            "Peak memory of calls",
            Unit::Bytes,
            self.memory.clone(),
        );
        registry.register("plugin_calls", "Calls by outcome", self.calls.clone());
        registry.register(
            "plugin_calls_unknown",
            "Calls with an unknown outcome",
            self.unknown.clone(),
        );
        let what = "Calls in flight; a replaced version is drained at 0";
        registry.register("plugin_calls_in_flight", what, self.in_flight.clone());
        registry.register(
            "plugin_runs",
            "Runs; a call with n requests takes n + 1",
            self.runs.clone(),
        );
        registry.register_with_unit(
            "plugin_slot_wait",
            "Wait for a free instance, of runs that had to wait",
            Unit::Seconds,
            self.slot_wait.clone(),
        );
        registry.register("plugin_cache_lookups", "Cache lookups of plugins", self.cache.clone());
    }

    /// Records the wait of a run for an instance.
    pub fn observe_slot_wait(&self, waited: Duration) {
        self.slot_wait.observe(waited.as_secs_f64());
    }

    pub fn count_cache_lookup(&self, found: bool) {
        let result = if found { "hit" } else { "miss" };
        self.cache.get_or_create(&[("result", result)]).inc();
    }

    /// Returns the meter of one version. `digest` holds its first digits.
    #[must_use]
    pub fn plugin(&self, name: Arc<str>, version: &str, digest: &str) -> PluginMeter {
        let (metrics, version, digest): (_, Arc<str>, Arc<str>) =
            (self.clone(), version.into(), digest.into());
        let (under_way, functions) = (OnceLock::new(), RwLock::default());
        PluginMeter { metrics, plugin: name, version, digest, in_flight: under_way, functions }
    }
}

/// Metrics of one version.
pub struct PluginMeter {
    metrics: PluginMetrics,
    plugin: Arc<str>,
    version: Arc<str>,
    digest: Arc<str>,
    /// Created by the first call, because many components are only inspected.
    in_flight: OnceLock<Gauge>,
    functions: RwLock<HashMap<&'static str, Arc<FunctionMeter>>>,
}

/// The series of one function, looked up at its first call.
pub struct FunctionMeter {
    outcomes: [Counter; OUTCOMES.len()],
    unknown: Counter,
    duration: Histogram,
    cpu: Histogram,
    memory: Histogram,
    runs: Counter,
}

/// Counts a call as in flight until it is dropped.
pub struct InFlightCall<'m>(&'m Gauge);

impl Drop for InFlightCall<'_> {
    fn drop(&mut self) {
        self.0.dec();
    }
}

impl PluginMeter {
    #[must_use]
    pub fn begin_call(&self) -> InFlightCall<'_> {
        let gauge = self.in_flight.get_or_init(|| {
            let (plugin, version) = (self.plugin.clone(), self.version.clone());
            let labels = VersionLabels { plugin, version, digest: self.digest.clone() };
            self.metrics.in_flight.get_or_create_owned(&labels)
        });
        gauge.inc();
        InFlightCall(gauge)
    }

    #[must_use]
    pub fn version(&self) -> &str {
        &self.version
    }

    pub fn observe(&self, function: &'static str, call: &CallMeasurements) {
        let known = {
            let functions = self.functions.read().unwrap_or_else(PoisonError::into_inner);
            functions.get(function).cloned()
        };
        known.unwrap_or_else(|| self.function_meter(function)).observe(call);
    }

    fn function_meter(&self, function: &'static str) -> Arc<FunctionMeter> {
        let labels = || FunctionLabels {
            plugin: self.plugin.clone(),
            version: self.version.clone(),
            digest: self.digest.clone(),
            function,
        };
        let outcomes = OUTCOMES.map(|(_, outcome)| {
            let FunctionLabels { plugin, version, digest, function } = labels();
            let ended = OutcomeLabels { plugin, version, digest, function, outcome };
            self.metrics.calls.get_or_create_owned(&ended)
        });
        let labels = labels();
        let meter = Arc::new(FunctionMeter {
            outcomes,
            unknown: self.metrics.unknown.get_or_create_owned(&labels),
            duration: self.metrics.duration.get_or_create_owned(&labels),
            cpu: self.metrics.cpu.get_or_create_owned(&labels),
            memory: self.metrics.memory.get_or_create_owned(&labels),
            runs: self.metrics.runs.get_or_create_owned(&labels),
        });
        let mut functions = self.functions.write().unwrap_or_else(PoisonError::into_inner);
        functions.insert(function, meter.clone());
        meter
    }
}

impl FunctionMeter {
    fn observe(&self, call: &CallMeasurements) {
        self.outcomes[call.outcome as usize].inc();
        self.unknown.inc_by(call.unknown.into());
        self.duration.observe(call.duration.as_secs_f64());
        self.cpu.observe(call.cpu.as_secs_f64());
        self.memory.observe(call.peak_memory_bytes as f64);
        self.runs.inc_by(call.runs.into());
    }
}

/// Creates the span of a call, which covers all runs.
#[must_use]
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

/// Records the outcome and the cost of a call in its span.
pub fn record_call(span: &Span, call: &CallMeasurements, requests: usize) {
    if span.is_disabled() {
        return;
    }
    span.record("plugin.outcome", call.outcome.name());
    span.record("plugin.runs", call.runs);
    span.record("plugin.requests", requests);
    span.record("plugin.cpu_us", call.cpu.as_micros() as u64);
    if call.outcome != CallOutcome::Ok {
        spans::mark_failed(span);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outcomes_are_indexed_by_their_variant() {
        for (n, (outcome, _)) in OUTCOMES.into_iter().enumerate() {
            assert_eq!(outcome as usize, n, "{outcome:?}");
        }
    }
}
