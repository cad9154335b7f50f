//! What operators watch: metrics, logs and traces.
//!
//! Each part of the host counts into metrics that it owns (`store.metrics`, `workers.metrics`, …), and a host's [`Telemetry`]
//! puts them all into one registry, so that many hosts live in one process without a global. Labels are of bounded number:
//! routes, plugins, kinds and outcomes, never companies, paths or references.

mod collector;
mod egress;
mod jobs;
mod listeners;
mod messages;
mod metric;
mod noted;
mod plugins;
mod process;
mod reporting;
mod requests;
pub mod spans;
mod store;
mod tasks;
mod watched;

use prometheus_client::encoding::text;
pub use prometheus_client::{metrics::counter::Counter, registry::Registry};

pub use self::{
    egress::{EgressMetrics, status_class},
    jobs::{JobMetrics, JobOutcome},
    listeners::ListenerMetrics,
    messages::{MessageMetrics, MessageOutcome},
    metric::{Each, Now},
    noted::Noted,
    plugins::{CallMeasured, CallOutcome, PluginMeter, PluginMetrics},
    reporting::{Reporting, Reports},
    requests::{Exchange, RequestMetrics},
    store::StoreMetrics,
    tasks::TaskMetrics,
    watched::{Waiting, Watched},
};
use crate::clock::Timestamp;

/// What one host can tell of itself.
pub struct Telemetry {
    pub requests: RequestMetrics,
    pub listeners: ListenerMetrics,
    pub messages: MessageMetrics,
    pub watched: Watched,
    pub noted: Noted,
    registry: Registry,
}

/// The content type of [`Telemetry::scrape`].
pub const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

impl Telemetry {
    /// `started` is when this host began.
    #[must_use]
    pub fn new(started: Timestamp) -> Telemetry {
        let mut registry = Registry::default();
        let (requests, watched) = (RequestMetrics::default(), Watched::default());
        let (listeners, noted) = (ListenerMetrics::default(), Noted::default());
        let messages = MessageMetrics::default();
        let own = registry.sub_registry_with_prefix("tollhouse");
        requests.register(own);
        listeners.register(own);
        messages.register(own);
        watched.register(own);
        noted.register(own);
        process::register(&mut registry, started);
        Telemetry { requests, listeners, messages, watched, noted, registry }
    }

    /// Adds what a part of the host counts; every name begins with `tollhouse_`.
    #[must_use]
    pub fn with(mut self, register: impl FnOnce(&mut Registry)) -> Telemetry {
        register(self.registry.sub_registry_with_prefix("tollhouse"));
        self
    }

    /// All metrics in the text format of OpenMetrics 1.0.
    #[must_use]
    pub fn scrape(&self) -> String {
        let mut page = String::new();
        text::encode(&mut page, &self.registry).expect("a String takes every write");
        page
    }
}
