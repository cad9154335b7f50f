//! What the host says of itself.

use clap::{Args, ValueEnum};

#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Telemetry")]
pub struct Telemetry {
    /// How logs are written, to standard error
    #[arg(long, env = "TOLLHOUSE_LOG_FORMAT", value_name = "format", value_enum, default_value_t = LogFormat::Human)]
    pub log_format: LogFormat,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    Human,
    Json,
}
