//! Output of logs and traces. It is global state, so only the program itself starts it.

use std::{
    io::{self, IsTerminal},
    panic,
};

use opentelemetry::trace::TracerProvider;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::{
    EnvFilter, Layer, Registry, filter::Targets, fmt, layer::SubscriberExt, util::SubscriberInitExt,
};

use super::{collector, spans::SPAN_TARGET};

/// Configuration of logs and traces.
#[derive(Clone, Debug)]
pub struct TelemetryConfig {
    /// True if log lines are JSON.
    pub json: bool,
    /// Default log level, overridden by `RUST_LOG`.
    pub level: LevelFilter,
    /// Base URL of a collector that accepts OTLP over HTTP.
    pub otlp_endpoint: Option<String>,
    /// Share of traces that are sampled, 0 to 1.
    pub otlp_sample_ratio: f64,
}

/// The running trace exporter; [`TraceExporter::shutdown`] flushes it.
pub struct TraceExporter {
    traces: Option<SdkTracerProvider>,
}

impl TelemetryConfig {
    /// Installs the global logger and trace exporter: once per process, within a Tokio runtime.
    pub fn start(&self) -> Result<TraceExporter, Box<dyn std::error::Error + Send + Sync>> {
        let mut layers = vec![self.logs()];
        let traces = match &self.otlp_endpoint {
            Some(endpoint) => {
                let provider = collector::provider(endpoint, self.otlp_sample_ratio)?;
                let layer = tracing_opentelemetry::layer()
                    .with_tracer(provider.tracer("tollhouse"))
                    .with_context_activation(false)
                    .with_location(false)
                    .with_threads(false)
                    .with_target(false)
                    .with_level(false)
                    .with_tracked_inactivity(false)
                    .with_filter(Targets::new().with_target(SPAN_TARGET, LevelFilter::TRACE));
                layers.push(layer.boxed());
                Some(provider)
            }
            None => None,
        };
        tracing_subscriber::registry().with(layers).init();
        panic::set_hook(Box::new(|panic| {
            let at = panic.location().map(ToString::to_string);
            let what = panic.payload_as_str().unwrap_or_default();
            tracing::error!(at, "panic: {what}");
        }));
        Ok(TraceExporter { traces })
    }

    fn logs(&self) -> Box<dyn Layer<Registry> + Send + Sync> {
        let filter = EnvFilter::try_from_default_env()
            .unwrap_or_else(|_| EnvFilter::new(self.level.to_string()));
        let no_spans = format!("{SPAN_TARGET}=off").parse().expect("a directive");
        let filter = filter.add_directive(no_spans);
        let lines = fmt::layer().with_writer(io::stderr);
        let plain = std::env::var_os("NO_COLOR").is_some_and(|text| !text.is_empty());
        let lines = lines.with_ansi(io::stderr().is_terminal() && !plain);
        match self.json {
            true => lines.json().with_filter(filter).boxed(),
            false => lines.with_filter(filter).boxed(),
        }
    }
}

impl TraceExporter {
    /// Exports the remaining spans, for at most 5 s.
    pub async fn shutdown(self) {
        let Some(traces) = self.traces else { return };
        // Blocks on a thread that needs this runtime.
        let sent = tokio::task::spawn_blocking(move || {
            traces.shutdown_with_timeout(collector::EXPORT_TIMEOUT)
        });
        if let Ok(Err(error)) = sent.await {
            tracing::warn!(%error, "last spans could not be sent");
        }
    }
}
