//! What the service is to its companies.

use clap::{ArgAction, Args};

use crate::egress::EgressPolicy;

#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Service")]
pub struct Service {
    /// What events call this service
    #[arg(long, env = "TOLLHOUSE_SERVICE", value_name = "text", default_value = "tollhouse")]
    pub service: String,
    /// The provider when neither request nor company names one
    #[arg(
        long,
        env = "TOLLHOUSE_DEFAULT_PROVIDER",
        value_name = "name",
        default_value = "provider_a"
    )]
    pub default_provider: String,
    /// May be reached, by plugins and events, over https, though their addresses are private. Commas between, or repeated
    #[arg(long, env = "TOLLHOUSE_ALLOW_PRIVATE", value_name = "host names", value_delimiter = ',')]
    pub allow_private: Vec<String>,
    /// Allows http to loopback, and moving the clock. Not for production
    #[arg(long, env = "TOLLHOUSE_DEVELOPMENT", value_name = "bool", default_value_t = false,
          action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub development: bool,
}

impl Service {
    #[must_use]
    pub fn egress(&self) -> EgressPolicy {
        EgressPolicy { allow_loopback: self.development, allow_private: self.allow_private.clone() }
    }
}
