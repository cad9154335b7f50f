//! Metrics of requests, for both listeners.

use std::{sync::Arc, time::Instant};

use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, gauge::Gauge},
    registry::{Registry, Unit},
};

use tollhouse_platform::telemetry::{
    metric::{Histograms, Label, waiting_seconds},
    spans::known,
};

/// Status of a request whose client closed the connection before the response.
const HUNG_UP: u16 = 499;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Asked {
    /// `public` or `internal`.
    listener: &'static str,
    method: &'static str,
    /// Pattern of the path; paths themselves contain e-mail addresses and references.
    route: Arc<str>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Answered {
    listener: &'static str,
    method: &'static str,
    route: Arc<str>,
    status: u16,
}

#[derive(Clone)]
pub struct RequestMetrics {
    answered: Family<Answered, Counter>,
    duration: Histograms<Asked>,
    in_flight: Family<Label<&'static str>, Gauge>,
}

impl Default for RequestMetrics {
    fn default() -> RequestMetrics {
        RequestMetrics {
            answered: Family::default(),
            duration: Family::new_with_constructor(waiting_seconds),
            in_flight: Family::default(),
        }
    }
}

impl RequestMetrics {
    pub fn register(&self, registry: &mut Registry) {
        registry.register("http_requests", "Requests by status", self.answered.clone());
        registry.register_with_unit(
            "http_request_duration",
            "Time from request headers to response headers",
            Unit::Seconds,
            self.duration.clone(),
        );
        registry.register("http_requests_in_flight", "Requests in flight", self.in_flight.clone());
    }

    /// Records the start of a request. `route` is the pattern of its path.
    #[must_use]
    pub fn begin(&self, listener: &'static str, method: &str, route: Arc<str>) -> Exchange {
        let in_flight = self.in_flight.get_or_create_owned(&[("listener", listener)]);
        in_flight.inc();
        let asked = Asked { listener, method: known(method), route };
        Exchange { metrics: self.clone(), asked, in_flight, began: Instant::now(), status: HUNG_UP }
    }
}

/// A request in flight. Recorded when dropped, with status 499 unless it was answered.
pub struct Exchange {
    metrics: RequestMetrics,
    asked: Asked,
    in_flight: Gauge,
    began: Instant,
    status: u16,
}

impl Exchange {
    #[must_use]
    pub fn elapsed_ms(&self) -> f64 {
        self.began.elapsed().as_micros() as f64 / 1_000.0
    }

    pub fn answered(&mut self, status: u16) {
        self.status = status;
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        if self.status == HUNG_UP {
            tracing::info!(
                duration_ms = self.elapsed_ms(),
                "client closed the connection before the response"
            );
        }
        self.in_flight.dec();
        let Asked { listener, method, ref route } = self.asked;
        let answered = Answered { listener, method, route: route.clone(), status: self.status };
        self.metrics.answered.get_or_create(&answered).inc();
        self.metrics
            .duration
            .get_or_create(&self.asked)
            .observe(self.began.elapsed().as_secs_f64());
    }
}
