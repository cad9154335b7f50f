//! The spans of traces: what each kind is called and says, by OpenTelemetry's conventions. None holds a path, an address, a
//! reference, or anything else of a person or a secret.
//!
//! They have a target of their own, by which traces take them and logs leave them out; without a collector they cost nothing.

use opentelemetry::propagation::TextMapPropagator;
use opentelemetry_http::HeaderExtractor;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use reqwest::header::HeaderMap;
use tracing::{Span, field::Empty, info_span};
use tracing_opentelemetry::OpenTelemetrySpanExt;

use super::{CallMeasured, CallOutcome, requests::known};

/// The target of spans that belong into traces.
pub const SPANS: &str = "spans";

/// A request to this host; it goes on with the caller's trace, when `headers` have a `traceparent`.
#[must_use]
pub fn request(id: &str, method: &str, route: &str, headers: &HeaderMap) -> Span {
    let method = known(method);
    let span = info_span!(
        target: SPANS,
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
        // Fails only where no trace is made.
        let _ = span.set_parent(parent);
    }
    span
}

/// How a request to this host was answered.
pub fn answered(span: &Span, status: u16) {
    span.record("http.response.status_code", status);
    if status >= 500 {
        span.record("otel.status_code", "ERROR");
    }
}

/// A run of a job.
#[must_use]
pub fn job(kind: &str, failures: i64) -> Span {
    info_span!(
        target: SPANS,
        "job",
        otel.name = kind,
        otel.kind = "consumer",
        otel.status_code = Empty,
        job.kind = kind,
        job.failures = failures,
    )
}

/// A call of a plugin, with all its runs.
#[must_use]
pub fn plugin_call(plugin: &str, version: &str, digest: &str, function: &str) -> Span {
    info_span!(
        target: SPANS,
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

/// What came of it.
pub fn called(span: &Span, call: &CallMeasured, requests: usize) {
    if span.is_disabled() {
        return;
    }
    span.record("plugin.outcome", call.outcome.name());
    span.record("plugin.runs", call.runs);
    span.record("plugin.requests", requests);
    span.record("plugin.cpu_us", call.cpu.as_micros() as u64);
    if call.outcome != CallOutcome::Ok {
        failed(span);
    }
}

/// A request that leaves this host; the other side is not told of the trace.
#[must_use]
pub fn egress(sender: &str, method: &str) -> Span {
    let method = known(method);
    info_span!(
        target: SPANS,
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

/// A transaction, with the time that it waits for its turn.
#[must_use]
pub fn transaction(kind: &'static str) -> Span {
    info_span!(target: SPANS, "transaction", otel.name = kind, otel.kind = "client", otel.status_code = Empty)
}

/// Why a request that left this host got no answer.
pub fn gone_wrong(span: &Span, kind: &str) {
    span.record("error.type", kind);
    failed(span);
}

/// What a span is about went wrong.
pub fn failed(span: &Span) {
    span.record("otel.status_code", "ERROR");
}
