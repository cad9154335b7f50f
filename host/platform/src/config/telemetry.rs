//! Telemetry settings.

use clap::{Args, ValueEnum};
use tracing::level_filters::LevelFilter;
use url::Url;

use crate::config::ConfigError;
use crate::telemetry::TelemetryConfig;

/// OpenTelemetry's standard variable for `otlp_endpoint`.
const OTEL_ENDPOINT_VARIABLE: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";

#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Telemetry")]
pub struct TelemetrySettings {
    /// Format of the logs on standard error
    #[arg(long, env = "TOLLHOUSE_LOG_FORMAT", value_name = "format", value_enum, default_value_t = LogFormat::Human)]
    pub log_format: LogFormat,
    /// Base URL of an OpenTelemetry collector (OTLP over HTTP); traces are sent to its path
    /// /v1/traces. Default: OTEL_EXPORTER_OTLP_ENDPOINT. Without either, no traces are sent
    #[arg(long, env = "TOLLHOUSE_OTLP_ENDPOINT", value_name = "URL")]
    pub otlp_endpoint: Option<String>,
    /// Share of traces that are sampled, 0 to 1
    #[arg(long, env = "TOLLHOUSE_OTLP_SAMPLE_RATIO", value_name = "ratio", default_value_t = 1.0, value_parser = ratio)]
    pub otlp_sample_ratio: f64,
}

impl TelemetrySettings {
    #[must_use]
    pub fn telemetry_config(&self) -> TelemetryConfig {
        TelemetryConfig {
            json: self.log_format == LogFormat::Json,
            level: LevelFilter::INFO,
            otlp_endpoint: self.endpoint().map(|(_, url)| url),
            otlp_sample_ratio: self.otlp_sample_ratio,
        }
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

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    Human,
    Json,
}
