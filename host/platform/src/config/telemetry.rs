//! Telemetry settings.

use std::error::Error;

use tracing::Level;
use url::Url;

use crate::config::{ConfigError, settings};
use crate::telemetry::{self, LogFormat, TraceExporter};

/// OpenTelemetry's standard variable for `otlp_endpoint`.
const OTEL_ENDPOINT_VARIABLE: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";

settings! {
    "Telemetry" TelemetrySettings;
    /// Format of the logs on standard error
    log_format: LogFormat = LogFormat::Human, "TOLLHOUSE_LOG_FORMAT", "format", value_enum;
    /// Base URL of an OpenTelemetry collector (OTLP over HTTP); traces are sent to its path
    /// /v1/traces. Default: OTEL_EXPORTER_OTLP_ENDPOINT. Without either, no traces are sent
    otlp_endpoint: Option<String>, "TOLLHOUSE_OTLP_ENDPOINT", "URL";
    /// Share of traces that are sampled, 0 to 1
    otlp_sample_ratio: f64 = 1.0, "TOLLHOUSE_OTLP_SAMPLE_RATIO", "ratio", value_parser = ratio;
}

impl TelemetrySettings {
    /// Installs the global logger and trace exporter: see [`telemetry::start`].
    pub fn start(&self, level: Level) -> Result<TraceExporter, Box<dyn Error + Send + Sync>> {
        let collector = self.endpoint().map(|(_, url)| (url, self.otlp_sample_ratio));
        telemetry::start(self.log_format, level, collector)
    }

    /// Returns the collector's URL, preceded by the name of its setting.
    fn endpoint(&self) -> Option<(&'static str, String)> {
        let own = self.otlp_endpoint.clone().map(|url| ("otlp_endpoint", url));
        let standard =
            || Some((OTEL_ENDPOINT_VARIABLE, std::env::var(OTEL_ENDPOINT_VARIABLE).ok()?));
        own.or_else(standard).filter(|(_, url)| !url.is_empty())
    }

    /// Refuses an endpoint that is not an http or https base URL.
    pub fn check(&self) -> Result<(), ConfigError> {
        let Some((setting, text)) = self.endpoint() else { return Ok(()) };
        // A path is appended. The parser alone would accept `collector:4318` or `http:collector`.
        let begins = ["http://", "https://"].iter().any(|scheme| text.starts_with(scheme));
        let is_base = |url: Url| url.query().is_none() && url.fragment().is_none();
        match begins && Url::parse(&text).is_ok_and(is_base) {
            true => Ok(()),
            false => Err(ConfigError(format!(
                "{setting} must be an http or https URL without a query, like http://127.0.0.1:4318"
            ))),
        }
    }
}

fn ratio(text: &str) -> Result<f64, &'static str> {
    let ratio = text.parse().ok().filter(|ratio| (0.0..=1.0).contains(ratio));
    ratio.ok_or("it must be a number from 0 to 1")
}
