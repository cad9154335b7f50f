//! What the service is to its companies.

use clap::{ArgAction, Args};

use super::requests::positive;
use crate::{
    egress::{EgressPolicy, Purpose},
    money::Minor,
    users::{ExportLimits, Quota},
};

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
    /// Operators are told when a charge takes a wallet below this, unless the company has a threshold of its own. 0: never
    #[arg(long, env = "TOLLHOUSE_LOW_BALANCE", value_name = "NGN", default_value = "1000", value_parser = threshold)]
    pub low_balance: Minor,
    /// What verifying a card takes, and gives back, in NGN: not less than the provider charges and refunds
    #[arg(long, env = "TOLLHOUSE_CARD_CHARGE_NGN", value_name = "NGN", default_value = "100", value_parser = charge)]
    pub card_charge_ngn: Minor,
    /// The same in USD
    #[arg(long, env = "TOLLHOUSE_CARD_CHARGE_USD", value_name = "USD", default_value = "1", value_parser = charge)]
    pub card_charge_usd: Minor,
    /// For how long messages that have ended, and what operators were told, can be looked at
    #[arg(
        long,
        env = "TOLLHOUSE_HISTORY_DAYS",
        value_name = "days",
        default_value_t = 90,
        value_parser = clap::value_parser!(u16).range(1..=3_650)
    )]
    pub history_days: u16,
    /// Where files are kept for a quarter of an hour, such as exports of users: a folder of this host, or s3://BUCKET/PREFIX, for
    /// which the usual AWS_… variables say region, endpoint and credentials. Several hosts share a bucket or a network folder
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
    /// Plugins may reach these over https though their addresses are private, as far as they are granted. Commas between, or repeated
    #[arg(
        long,
        env = "TOLLHOUSE_ALLOW_PRIVATE_PLUGINS",
        value_name = "host names",
        value_delimiter = ','
    )]
    pub allow_private_plugins: Vec<String>,
    /// The same for events: every company may name these in its event and callback URLs
    #[arg(
        long,
        env = "TOLLHOUSE_ALLOW_PRIVATE_EVENTS",
        value_name = "host names",
        value_delimiter = ','
    )]
    pub allow_private_events: Vec<String>,
    /// The same for images: every company may name these in the image URLs of identity lookups
    #[arg(
        long,
        env = "TOLLHOUSE_ALLOW_PRIVATE_IMAGES",
        value_name = "host names",
        value_delimiter = ','
    )]
    pub allow_private_images: Vec<String>,
    /// Refused: nobody should believe that a host still knows it
    #[arg(long, env = "TOLLHOUSE_ALLOW_PRIVATE", hide = true, value_parser = replaced)]
    pub allow_private: Option<String>,
    /// Serves requests only: runs no jobs, sweeps, deliveries or messages, and contacts no provider. For looking at a restored copy
    #[arg(long, env = "TOLLHOUSE_NO_JOBS", value_name = "bool", default_value_t = false,
          action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub no_jobs: bool,
    /// Allows http to loopback, and moving the clock. Not for production
    #[arg(long, env = "TOLLHOUSE_DEVELOPMENT", value_name = "bool", default_value_t = false,
          action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub development: bool,
}

fn replaced(_: &str) -> Result<String, &'static str> {
    Err(
        "it is given per purpose now: allow_private_plugins, allow_private_events, allow_private_images",
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
