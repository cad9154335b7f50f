//! Settings of the service as a whole.

use crate::state::settings::{ExportLimits, Quota};
use clap::ValueEnum;
use tollhouse_platform::{
    config::settings,
    outbound::egress::EgressPolicy,
    store::{EnumString, IntoStaticStr, text_columns},
    values::money::Minor,
};

/// Who bears a fee that a provider keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, EnumString, IntoStaticStr, ValueEnum)]
#[strum(serialize_all = "snake_case")]
pub enum FeeBearer {
    Service,
    Company,
}

text_columns!(FeeBearer);

settings! {
    "Service" Service;
    /// Name of this service in events
    service: String, "TOLLHOUSE_SERVICE", "text", default_value = "tollhouse";
    /// Provider if neither the request nor the company names one
    default_provider: String, "TOLLHOUSE_DEFAULT_PROVIDER", "name", default_value = "provider_a";
    /// Default wallet balance below which a fee triggers an operator event. 0: never
    low_balance: Minor, "TOLLHOUSE_LOW_BALANCE", "NGN", default_value = "1000",
        value_parser = threshold;
    /// Verification charge of cards in NGN; at least the provider's minimum for charges and refunds
    card_charge_ngn: Minor, "TOLLHOUSE_CARD_CHARGE_NGN", "NGN", default_value = "100",
        value_parser = charge;
    /// Verification charge of cards in USD; at least the provider's minimum for charges and refunds
    card_charge_usd: Minor, "TOLLHOUSE_CARD_CHARGE_USD", "USD", default_value = "1",
        value_parser = charge;
    /// Who bears the fees that a provider keeps when a payment is refunded, reversed or lost in a
    /// dispute: the company, from its wallet, or the service, in the ledger account `fees`
    refund_fees: FeeBearer = FeeBearer::Service, "TOLLHOUSE_REFUND_FEES", "bearer", value_enum;
    /// Retention of finished messages and of operator events
    history_days: u16 [1..=3_650] = 90, "TOLLHOUSE_HISTORY_DAYS", "days";
    /// Retention of API requests in the log of their company, without their content. 0: no log
    api_log_days: u32 [..=30] = 0, "TOLLHOUSE_API_LOG_DAYS", "days";
    /// Retention of the log of plugin calls, without their data, for timelines and charts. 0: no
    /// log
    call_log_days: u32 [..=90] = 30, "TOLLHOUSE_CALL_LOG_DAYS", "days";
    /// Storage of files such as user exports, which are kept for 15 minutes: a folder of this host,
    /// or s3://BUCKET/PREFIX with region, endpoint and credentials from the AWS_… variables.
    /// Several hosts share a bucket or a network folder
    files: String, "TOLLHOUSE_FILES", "folder or s3://…", default_value = "tollhouse-files";
    /// Maximum number of export files of one company at a time. Further exports receive 429
    max_company_exports: u32 [1..] = 20, "TOLLHOUSE_MAX_COMPANY_EXPORTS", "files";
    /// Maximum size of all export files of one company together. Further exports receive 429
    max_company_export_mib: u32 [1..] = 1_024, "TOLLHOUSE_MAX_COMPANY_EXPORT_MIB", "MiB";
    /// Maximum number of export files at a time. Further exports receive 503
    max_exports: u32 [1..] = 500, "TOLLHOUSE_MAX_EXPORTS", "files";
    /// Maximum size of all export files together. Further exports receive 503
    max_export_mib: u32 [1..] = 4_096, "TOLLHOUSE_MAX_EXPORT_MIB", "MiB";
    /// Hosts that plugins may contact over https despite a private address, if it is granted.
    /// Comma-separated, or repeated
    allow_private_plugins: Vec<String>, "TOLLHOUSE_ALLOW_PRIVATE_PLUGINS", "host names",
        value_delimiter = ',';
    /// Hosts that event and callback URLs of any company may name despite a private address.
    /// Comma-separated, or repeated
    allow_private_events: Vec<String>, "TOLLHOUSE_ALLOW_PRIVATE_EVENTS", "host names",
        value_delimiter = ',';
    /// Hosts that image URLs of identity lookups of any company may name despite a private address.
    /// Comma-separated, or repeated
    allow_private_images: Vec<String>, "TOLLHOUSE_ALLOW_PRIVATE_IMAGES", "host names",
        value_delimiter = ',';
    /// Replaced by three settings. Rejected, because ignoring it silently would break its users
    allow_private: Option<String>, "TOLLHOUSE_ALLOW_PRIVATE", "ALLOW_PRIVATE", hide = true,
        value_parser = replaced;
    /// Serves the portal for members of companies under `/portal` of the public listener
    flag portal, "TOLLHOUSE_PORTAL";
    /// Serves requests only: no jobs, sweeps, deliveries, messages or calls to providers. For
    /// restored copies
    flag no_jobs, "TOLLHOUSE_NO_JOBS";
    /// Allows http to loopback addresses and advancing the clock. Not for production
    flag development, "TOLLHOUSE_DEVELOPMENT";
}

fn replaced(_: &str) -> Result<String, &'static str> {
    Err(
        "it was replaced by one setting per purpose: allow_private_plugins, allow_private_events, allow_private_images",
    )
}

pub(super) fn threshold(text: &str) -> Result<Minor, &'static str> {
    let minor = text.parse().ok().and_then(|number| Minor::from_major(&number).ok());
    let minor = minor.filter(|minor| *minor >= Minor(0));
    minor.ok_or("it must be a number, 0 or more, with at most 2 decimals")
}

fn charge(text: &str) -> Result<Minor, &'static str> {
    let minor = threshold(text).ok().filter(|minor| *minor > Minor(0));
    minor.ok_or("it must be a number greater than 0, with at most 2 decimals")
}

impl Service {
    pub fn exports(&self) -> ExportLimits {
        let quota =
            |files: u32, mib: u32| Quota { files: files.into(), bytes: i64::from(mib) << 20 };
        ExportLimits {
            company: quota(self.max_company_exports, self.max_company_export_mib),
            all: quota(self.max_exports, self.max_export_mib),
        }
    }

    pub fn egress_policies(&self) -> [EgressPolicy; 3] {
        let allowed =
            [&self.allow_private_plugins, &self.allow_private_events, &self.allow_private_images];
        let allow_loopback = self.development;
        allowed.map(|hosts| EgressPolicy { allow_loopback, allow_private: hosts.clone() })
    }
}
