//! Metrics of outgoing requests, by sender.

use std::{sync::Arc, time::Duration};

use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family},
    registry::{Registry, Unit},
};

use crate::telemetry::metric::{Histograms, Label, wait_time_histogram};

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct EgressLabels {
    /// Name of a plugin, `events` or `images`; never a destination.
    sender: Arc<str>,
    /// Status class such as `2xx`, or kind of failure.
    outcome: &'static str,
}

#[derive(Clone)]
pub struct EgressMetrics {
    requests: Family<EgressLabels, Counter>,
    duration: Histograms<Label<Arc<str>>>,
}

impl Default for EgressMetrics {
    fn default() -> EgressMetrics {
        let duration = Family::new_with_constructor(wait_time_histogram as fn() -> _);
        EgressMetrics { requests: Family::default(), duration }
    }
}

impl EgressMetrics {
    pub fn register(&self, registry: &mut Registry) {
        registry.register("egress_requests", "Outgoing requests by outcome", self.requests.clone());
        registry.register_with_unit(
            "egress_request_duration",
            "Duration of outgoing requests, including the response body",
            Unit::Seconds,
            self.duration.clone(),
        );
    }

    pub fn observe(&self, sender: &Arc<str>, outcome: &'static str, duration: Duration) {
        self.requests.get_or_create(&EgressLabels { sender: sender.clone(), outcome }).inc();
        let duration = duration.as_secs_f64();
        self.duration.get_or_create(&[("sender", sender.clone())]).observe(duration);
    }
}

#[must_use]
pub fn status_class(status: u16) -> &'static str {
    match status {
        100..200 => "1xx",
        200..300 => "2xx",
        300..400 => "3xx",
        400..500 => "4xx",
        _ => "5xx",
    }
}
