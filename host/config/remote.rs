//! How the command line reaches a host that runs.

use std::path::PathBuf;

use clap::Args;

use super::OperatorToken;

/// What commands that talk to a host need.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "The host to talk to")]
pub struct Remote {
    /// The internal interface
    #[arg(
        long,
        env = "TOLLHOUSE_INTERNAL_URL",
        value_name = "URL",
        default_value = "http://127.0.0.1:8081"
    )]
    pub internal_url: String,
    /// Certificates, as PEM, of those who may vouch for the host besides the usual authorities
    #[arg(long, env = "TOLLHOUSE_INTERNAL_CA_FILE", value_name = "file")]
    pub internal_ca_file: Option<PathBuf>,
    #[command(flatten)]
    pub operator_token: OperatorToken,
}
