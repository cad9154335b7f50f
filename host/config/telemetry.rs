//! What the host says of itself.

use clap::{Args, ValueEnum};

use crate::telemetry::Reporting;

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
        let standard = || std::env::var("OTEL_EXPORTER_OTLP_ENDPOINT").ok();
        let endpoint = self.otlp_endpoint.clone().or_else(standard);
        Reporting {
            json: self.log_format == LogFormat::Json,
            otlp_endpoint: endpoint.filter(|url| !url.is_empty()),
            otlp_sample_ratio: self.otlp_sample_ratio,
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
