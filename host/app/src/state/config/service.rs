//! Settings of the service as a whole.

use clap::{ArgAction, Args};

use crate::state::settings::{ExportLimits, Quota};
use tollhouse_http::settings::requests::positive;
use tollhouse_platform::{
    outbound::egress::{EgressPolicy, Purpose},
    values::money::Minor,
};

#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Service")]
pub struct Service {
    /// Name of this service in events
    #[arg(long, env = "TOLLHOUSE_SERVICE", value_name = "text", default_value = "tollhouse")]
    pub service: String,
    /// Provider if neither the request nor the company names one
    #[arg(
        long,
        env = "TOLLHOUSE_DEFAULT_PROVIDER",
        value_name = "name",
        default_value = "provider_a"
    )]
    pub default_provider: String,
    /// Default wallet balance below which a fee triggers an operator event. 0: never
    #[arg(long, env = "TOLLHOUSE_LOW_BALANCE", value_name = "NGN", default_value = "1000", value_parser = threshold)]
    pub low_balance: Minor,
    /// Verification charge of cards in NGN; at least the provider's minimum for charges and refunds
    #[arg(long, env = "TOLLHOUSE_CARD_CHARGE_NGN", value_name = "NGN", default_value = "100", value_parser = charge)]
    pub card_charge_ngn: Minor,
    /// Verification charge of cards in USD; at least the provider's minimum for charges and refunds
    #[arg(long, env = "TOLLHOUSE_CARD_CHARGE_USD", value_name = "USD", default_value = "1", value_parser = charge)]
    pub card_charge_usd: Minor,
    /// Retention of finished messages and of operator events
    #[arg(
        long,
        env = "TOLLHOUSE_HISTORY_DAYS",
        value_name = "days",
        default_value_t = 90,
        value_parser = clap::value_parser!(u16).range(1..=3_650)
    )]
    pub history_days: u16,
    /// Storage of files such as user exports, which are kept for 15 minutes: a folder of this host,
    /// or s3://BUCKET/PREFIX with region, endpoint and credentials from the AWS_… variables.
    /// Several hosts share a bucket or a network folder
    #[arg(
        long,
        env = "TOLLHOUSE_FILES",
        value_name = "folder or s3://…",
        default_value = "tollhouse-files"
    )]
    pub files: String,
    /// Maximum number of export files of one company at a time. Further exports receive 429
    #[arg(long, env = "TOLLHOUSE_MAX_COMPANY_EXPORTS", value_name = "files",
          default_value_t = 20, value_parser = positive())]
    pub max_company_exports: u32,
    /// Maximum size of all export files of one company together. Further exports receive 429
    #[arg(long, env = "TOLLHOUSE_MAX_COMPANY_EXPORT_MIB", value_name = "MiB",
          default_value_t = 1_024, value_parser = positive())]
    pub max_company_export_mib: u32,
    /// Maximum number of export files at a time. Further exports receive 503
    #[arg(long, env = "TOLLHOUSE_MAX_EXPORTS", value_name = "files",
          default_value_t = 500, value_parser = positive())]
    pub max_exports: u32,
    /// Maximum size of all export files together. Further exports receive 503
    #[arg(long, env = "TOLLHOUSE_MAX_EXPORT_MIB", value_name = "MiB",
          default_value_t = 4_096, value_parser = positive())]
    pub max_export_mib: u32,
    /// Hosts that plugins may contact over https despite a private address, if it is granted.
    /// Comma-separated, or repeated
    #[arg(
        long,
        env = "TOLLHOUSE_ALLOW_PRIVATE_PLUGINS",
        value_name = "host names",
        value_delimiter = ','
    )]
    pub allow_private_plugins: Vec<String>,
    /// Hosts that event and callback URLs of any company may name despite a private address.
    /// Comma-separated, or repeated
    #[arg(
        long,
        env = "TOLLHOUSE_ALLOW_PRIVATE_EVENTS",
        value_name = "host names",
        value_delimiter = ','
    )]
    pub allow_private_events: Vec<String>,
    /// Hosts that image URLs of identity lookups of any company may name despite a private address.
    /// Comma-separated, or repeated
    #[arg(
        long,
        env = "TOLLHOUSE_ALLOW_PRIVATE_IMAGES",
        value_name = "host names",
        value_delimiter = ','
    )]
    pub allow_private_images: Vec<String>,
    /// Replaced by three settings. Rejected, because ignoring it silently would break its users
    #[arg(long, env = "TOLLHOUSE_ALLOW_PRIVATE", hide = true, value_parser = replaced)]
    pub allow_private: Option<String>,
    /// Serves requests only: no jobs, sweeps, deliveries, messages or calls to providers. For
    /// restored copies
    #[arg(long, env = "TOLLHOUSE_NO_JOBS", value_name = "bool", default_value_t = false,
          action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub no_jobs: bool,
    /// Allows http to loopback addresses and moving the clock. Not for production
    #[arg(long, env = "TOLLHOUSE_DEVELOPMENT", value_name = "bool", default_value_t = false,
          action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub development: bool,
}

fn replaced(_: &str) -> Result<String, &'static str> {
    Err(
        "it was replaced by one setting per purpose: allow_private_plugins, allow_private_events, allow_private_images",
    )
}

fn threshold(text: &str) -> Result<Minor, &'static str> {
    let minor = text.parse().ok().and_then(|number| Minor::from_major(&number).ok());
    let minor = minor.filter(|minor| *minor >= Minor(0));
    minor.ok_or("it must be a number, 0 or more, with at most 2 decimals")
}

fn charge(text: &str) -> Result<Minor, &'static str> {
    let minor = threshold(text).ok().filter(|minor| *minor > Minor(0));
    minor.ok_or("it must be a number greater than 0, with at most 2 decimals")
}

impl Service {
    #[must_use]
    pub fn exports(&self) -> ExportLimits {
        let quota =
            |files: u32, mib: u32| Quota { files: files.into(), bytes: i64::from(mib) << 20 };
        ExportLimits {
            company: quota(self.max_company_exports, self.max_company_export_mib),
            all: quota(self.max_exports, self.max_export_mib),
        }
    }

    #[must_use]
    pub fn egress(&self, purpose: Purpose) -> EgressPolicy {
        let allow_private = match purpose {
            Purpose::Plugins => &self.allow_private_plugins,
            Purpose::Events => &self.allow_private_events,
            Purpose::Images => &self.allow_private_images,
        };
        EgressPolicy { allow_loopback: self.development, allow_private: allow_private.clone() }
    }
}
