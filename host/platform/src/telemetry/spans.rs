//! Spans of traces, named by OpenTelemetry's conventions. They never contain paths, e-mail
//! addresses, references, other personal data or secrets.
//!
//! Their target separates them from log events. Without a collector they are disabled.

use opentelemetry::propagation::TextMapPropagator;
use opentelemetry_http::HeaderExtractor;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use reqwest::header::HeaderMap;
use tracing::{Span, field::Empty, info_span};
use tracing_opentelemetry::OpenTelemetrySpanExt;

/// Target of the spans that are exported.
pub const SPAN_TARGET: &str = "spans";

/// Creates the span of an incoming request, which continues the trace in a `traceparent` header.
pub fn request(id: &str, method: &str, route: &str, headers: &HeaderMap) -> Span {
    let method = known_method(method);
    let span = info_span!(
        target: SPAN_TARGET,
        "request",
        otel.name = format!("{method} {route}"),
        otel.kind = "server",
        otel.status_code = Empty,
        request.id = id,
        http.request.method = method,
        http.route = route,
        http.response.status_code = Empty,
    );
    if !span.is_disabled() {
        let parent = TraceContextPropagator::new().extract(&HeaderExtractor(headers));
        // Fails only if nothing is traced.
        let _ = span.set_parent(parent);
    }
    span
}

/// Records the status of a response; 5xx marks the span as failed.
pub fn record_status(span: &Span, status: u16) {
    span.record("http.response.status_code", status);
    if status >= 500 {
        mark_failed(span);
    }
}

pub fn job(kind: &str, failures: i64) -> Span {
    info_span!(
        target: SPAN_TARGET,
        "job",
        otel.name = kind,
        otel.kind = "consumer",
        otel.status_code = Empty,
        job.kind = kind,
        job.failures = failures,
    )
}

/// Creates the span of an outgoing request. The trace context is not propagated to the upstream.
pub fn egress(sender: &str, method: &str) -> Span {
    let method = known_method(method);
    info_span!(
        target: SPAN_TARGET,
        "egress",
        otel.name = method,
        otel.kind = "client",
        otel.status_code = Empty,
        egress.sender = sender,
        http.request.method = method,
        server.address = Empty,
        http.response.status_code = Empty,
        error.r#type = Empty,
    )
}

/// Creates the span of a transaction, which includes the wait for a connection or the writer.
pub fn transaction(kind: &'static str) -> Span {
    info_span!(target: SPAN_TARGET, "transaction", otel.name = kind, otel.kind = "client", otel.status_code = Empty)
}

pub fn mark_failed(span: &Span) {
    span.record("otel.status_code", "ERROR");
}

/// Returns a standard HTTP method, or `other` for one invented by a client or plugin.
pub fn known_method(method: &str) -> &'static str {
    let known = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"];
    known.into_iter().find(|known| *known == method).unwrap_or("other")
}
