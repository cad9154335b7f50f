//! Output of logs and traces. It is global state, so only the program itself starts it.

use std::{
    io::{self, IsTerminal},
    panic,
};

use clap::ValueEnum;
use opentelemetry::trace::TracerProvider;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tracing::{Level, level_filters::LevelFilter};
use tracing_subscriber::{
    EnvFilter, Layer, Registry, filter::Targets, fmt, layer::SubscriberExt, util::SubscriberInitExt,
};

use super::{collector, spans::SPAN_TARGET};

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    Human,
    Json,
}

/// The running trace exporter; [`TraceExporter::shutdown`] flushes it.
pub struct TraceExporter(Option<SdkTracerProvider>);

/// Installs the global logger and trace exporter: once per process, within a Tokio runtime. `level`
/// is overridden by `RUST_LOG`. `collector` is the base URL of a collector that accepts OTLP over
/// HTTP, and the share of traces that are sampled, 0 to 1.
pub fn start(
    format: LogFormat,
    level: Level,
    collector: Option<(String, f64)>,
) -> Result<TraceExporter, Box<dyn std::error::Error + Send + Sync>> {
    let mut layers = vec![logs(format, level)];
    let traces = collector.map(|(endpoint, ratio)| collector::provider(&endpoint, ratio));
    let traces = traces.transpose()?;
    if let Some(provider) = &traces {
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
    }
    tracing_subscriber::registry().with(layers).init();
    panic::set_hook(Box::new(|panic| {
        let at = panic.location().map(ToString::to_string);
        let what = panic.payload_as_str().unwrap_or_default();
        tracing::error!(at, "panic: {what}");
    }));
    Ok(TraceExporter(traces))
}

fn logs(format: LogFormat, level: Level) -> Box<dyn Layer<Registry> + Send + Sync> {
    let filter = EnvFilter::try_from_default_env();
    let filter = filter.unwrap_or_else(|_| EnvFilter::new(level.to_string()));
    let no_spans = format!("{SPAN_TARGET}=off").parse().expect("a directive");
    let filter = filter.add_directive(no_spans);
    let plain = std::env::var_os("NO_COLOR").is_some_and(|text| !text.is_empty());
    let lines = fmt::layer().with_writer(io::stderr);
    let lines = lines.with_ansi(io::stderr().is_terminal() && !plain);
    match format {
        LogFormat::Json => lines.json().with_filter(filter).boxed(),
        LogFormat::Human => lines.with_filter(filter).boxed(),
    }
}

impl TraceExporter {
    /// Exports the remaining spans, for at most 5 s.
    pub async fn shutdown(self) {
        let Some(traces) = self.0 else { return };
        // Blocks on a thread that needs this runtime.
        let sent = tokio::task::spawn_blocking(move || {
            traces.shutdown_with_timeout(collector::EXPORT_TIMEOUT)
        });
        if let Ok(Err(error)) = sent.await {
            tracing::warn!(%error, "last spans could not be sent");
        }
    }
}
