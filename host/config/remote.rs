//! How the command line reaches a host that runs.

use std::path::PathBuf;

use clap::Args;

#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "The host to talk to")]
pub struct Remote {
    /// The internal interface of the host that commands talk to
    #[arg(
        long,
        global = true,
        env = "TOLLHOUSE_INTERNAL_URL",
        value_name = "URL",
        default_value = "http://127.0.0.1:8081"
    )]
    pub internal_url: String,
    /// Certificates, as PEM, of those who may vouch for that host besides the usual authorities
    #[arg(long, global = true, env = "TOLLHOUSE_INTERNAL_CA_FILE", value_name = "file")]
    pub internal_ca_file: Option<PathBuf>,
}
