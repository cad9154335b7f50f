//! What the host says of itself.

use clap::{Args, ValueEnum};
use tracing::level_filters::LevelFilter;
use url::Url;

use super::ConfigError;
use crate::telemetry::Reporting;

/// What OpenTelemetry calls the setting `otlp_endpoint`.
const STANDARD: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";

#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Telemetry")]
pub struct Telemetry {
    /// How logs are written, to standard error
    #[arg(long, env = "TOLLHOUSE_LOG_FORMAT", value_name = "format", value_enum, default_value_t = LogFormat::Human)]
    pub log_format: LogFormat,
    /// An OpenTelemetry collector that takes OTLP over HTTP; traces go to its path /v1/traces. Without it, the one that
    /// OTEL_EXPORTER_OTLP_ENDPOINT names, else none
    #[arg(long, env = "TOLLHOUSE_OTLP_ENDPOINT", value_name = "URL")]
    pub otlp_endpoint: Option<String>,
    /// The share of traces that is kept, 0 to 1
    #[arg(long, env = "TOLLHOUSE_OTLP_SAMPLE_RATIO", value_name = "ratio", default_value_t = 1.0, value_parser = ratio)]
    pub otlp_sample_ratio: f64,
}

impl Telemetry {
    #[must_use]
    pub fn reporting(&self) -> Reporting {
        Reporting {
            json: self.log_format == LogFormat::Json,
            level: LevelFilter::INFO,
            otlp_endpoint: self.endpoint().map(|(_, url)| url),
            otlp_sample_ratio: self.otlp_sample_ratio,
        }
    }

    /// The collector's URL, after the name of the setting that it comes from.
    fn endpoint(&self) -> Option<(&'static str, String)> {
        let own = self.otlp_endpoint.clone().map(|url| ("otlp_endpoint", url));
        let standard = || Some((STANDARD, std::env::var(STANDARD).ok()?));
        own.or_else(standard).filter(|(_, url)| !url.is_empty())
    }

    /// Refuses a collector that no span would ever reach.
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        let Some((setting, text)) = self.endpoint() else { return Ok(()) };
        // A path is put behind it. The parser alone would take `collector:4318` for a scheme, and `http:collector` for a URL.
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
