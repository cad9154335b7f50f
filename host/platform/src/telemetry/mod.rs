//! Telemetry for operators: metrics, logs and traces.
//!
//! Each module owns its metrics (`store.metrics`, `workers.metrics`, …). [`Telemetry`] registers
//! them in one registry per host, so that a process can run several hosts. Label values are
//! bounded: routes, plugins, kinds and outcomes, never companies, paths or references.

mod collector;
pub mod metric;
mod output;
mod process;
pub mod spans;

use prometheus_client::encoding::text;
pub use prometheus_client::{metrics::counter::Counter, registry::Registry};

pub use self::{
    metric::{computed_gauge, computed_gauges},
    output::{LogFormat, TraceExporter, start},
    process::resident_bytes,
};
use crate::clock::Timestamp;

/// The metrics of one host.
pub struct Telemetry {
    registry: Registry,
}

/// The content type of [`Telemetry::scrape`].
pub const OPENMETRICS_CONTENT_TYPE: &str =
    "application/openmetrics-text; version=1.0.0; charset=utf-8";

impl Telemetry {
    /// Creates the registry with the process metrics. `started` is the start time of this host.
    pub fn new(started: Timestamp) -> Telemetry {
        let mut registry = Registry::default();
        process::register(&mut registry, started);
        Telemetry { registry }
    }

    /// Registers the metrics of a module; their names get the prefix `tollhouse_`.
    pub fn with(mut self, register: impl FnOnce(&mut Registry)) -> Telemetry {
        register(self.registry.sub_registry_with_prefix("tollhouse"));
        self
    }

    /// Returns all metrics in the text format of OpenMetrics 1.0.
    pub fn scrape(&self) -> String {
        let mut page = String::new();
        text::encode(&mut page, &self.registry).expect("writing to a String cannot fail");
        page
    }
}
