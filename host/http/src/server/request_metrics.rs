//! Metrics of requests, for both listeners.

use std::{sync::Arc, time::Instant};

use axum::response::Response;
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, gauge::Gauge},
    registry::{Registry, Unit},
};

use super::request_log::{LoggedRequest, RequestEnd};
use tollhouse_platform::{
    error::ErrorSummary,
    telemetry::{
        metric::{Histograms, Label, wait_time_histogram},
        spans::known_method,
    },
};

/// Status of a request whose client closed the connection before the response.
const CLIENT_CLOSED_REQUEST: u16 = 499;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    /// `public` or `internal`.
    listener: &'static str,
    method: &'static str,
    /// Pattern of the path; paths themselves contain e-mail addresses and references.
    route: Arc<str>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ResponseLabels {
    #[prometheus(flatten)]
    request: RequestLabels,
    status: u16,
}

#[derive(Clone)]
pub struct RequestMetrics {
    requests: Family<ResponseLabels, Counter>,
    duration: Histograms<RequestLabels>,
    in_flight: Family<Label<&'static str>, Gauge>,
}

impl Default for RequestMetrics {
    fn default() -> RequestMetrics {
        RequestMetrics {
            requests: Family::default(),
            duration: Family::new_with_constructor(wait_time_histogram),
            in_flight: Family::default(),
        }
    }
}

impl RequestMetrics {
    pub fn register(&self, registry: &mut Registry) {
        registry.register("http_requests", "Requests by status", self.requests.clone());
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
    pub fn begin(&self, listener: &'static str, method: &str, route: Arc<str>) -> InFlightRequest {
        let in_flight = self.in_flight.get_or_create_owned(&[("listener", listener)]);
        in_flight.inc();
        InFlightRequest {
            metrics: self.clone(),
            labels: RequestLabels { listener, method: known_method(method), route },
            in_flight,
            began: Instant::now(),
            status: CLIENT_CLOSED_REQUEST,
            error: None,
            log: None,
        }
    }
}

/// A request in flight. Recorded when dropped, with status 499 unless a response was sent.
pub struct InFlightRequest {
    metrics: RequestMetrics,
    labels: RequestLabels,
    in_flight: Gauge,
    began: Instant,
    status: u16,
    error: Option<ErrorSummary>,
    log: Option<LoggedRequest>,
}

impl InFlightRequest {
    /// Adds the log of API requests, if there is one.
    #[must_use]
    pub fn logged_by(mut self, log: Option<LoggedRequest>) -> InFlightRequest {
        self.log = log;
        self
    }

    #[must_use]
    pub fn elapsed_ms(&self) -> f64 {
        self.began.elapsed().as_micros() as f64 / 1_000.0
    }

    pub fn set_response(&mut self, response: &Response) {
        self.status = response.status().as_u16();
        self.error = response.extensions().get().cloned();
    }
}

impl Drop for InFlightRequest {
    fn drop(&mut self) {
        if self.status == CLIENT_CLOSED_REQUEST {
            tracing::info!(
                duration_ms = self.elapsed_ms(),
                "client closed the connection before the response"
            );
        }
        self.in_flight.dec();
        let labels = ResponseLabels { request: self.labels.clone(), status: self.status };
        self.metrics.requests.get_or_create(&labels).inc();
        let duration = self.began.elapsed();
        self.metrics.duration.get_or_create(&self.labels).observe(duration.as_secs_f64());
        if let Some(log) = &mut self.log {
            let RequestLabels { method, route, .. } = self.labels.clone();
            let (status, error) = (self.status, self.error.take());
            log.complete(RequestEnd { method, route, status, duration, error });
        }
    }
}
