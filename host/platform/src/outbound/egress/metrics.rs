//! Metrics of outgoing requests, by sender.

use std::{sync::Arc, time::Duration};

use crate::telemetry::metric::*;

#[derive(Clone)]
pub struct EgressMetrics {
    /// Labels: the sender (a plugin's name, `events`, `images` or `sign_in`, never a
    /// destination), and the status class such as `2xx`, or the kind of failure.
    requests: Family<[(&'static str, Arc<str>); 2], Counter>,
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
        let (sender, outcome) = (("sender", sender.clone()), ("outcome", outcome.into()));
        self.requests.get_or_create(&[sender.clone(), outcome]).inc();
        self.duration.get_or_create(&[sender]).observe(duration.as_secs_f64());
    }
}

pub fn status_class(status: u16) -> &'static str {
    match status {
        100..200 => "1xx",
        200..300 => "2xx",
        300..400 => "3xx",
        400..500 => "4xx",
        _ => "5xx",
    }
}
