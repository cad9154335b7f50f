//! Settings as the areas read them: plain values, checked when the host starts.

use super::config::Config;
use tollhouse_platform::{clock::Timestamp, config::ConfigError, values::money::Minor};

#[derive(Clone)]
pub struct Settings {
    /// Name of this service in events.
    pub service: String,
    /// The base of webhook URLs for providers.
    pub public_url: String,
    /// The provider of companies that set none.
    pub default_provider: String,
    pub operator_token: String,
    /// Default balance below which a fee triggers an operator event. 0: never.
    pub low_balance: Minor,
    pub card_charges: CardCharges,
    /// Retention of finished messages and operator events, in days.
    pub history_days: i64,
    /// Retention of plugin recordings, in hours; 0: no recordings.
    pub recording_hours: i64,
    /// Enables development features, for example moving the clock.
    pub development: bool,
    pub otp: OtpLimits,
    /// ISO 3166 codes of the countries that may receive SMS, for companies that set none.
    pub sms_countries: Vec<String>,
    pub exports: ExportLimits,
}

impl Settings {
    pub fn new(config: &Config) -> Result<Settings, ConfigError> {
        Ok(Settings {
            service: config.service.service.clone(),
            public_url: config.listeners.public_url(),
            default_provider: config.service.default_provider.clone(),
            operator_token: config.operator_token.read()?,
            low_balance: config.service.low_balance,
            card_charges: CardCharges {
                ngn: config.service.card_charge_ngn,
                usd: config.service.card_charge_usd,
            },
            history_days: config.service.history_days.into(),
            recording_hours: config.plugins.plugin_recording_retention_hours.into(),
            development: config.service.development,
            otp: config.otp.limits(),
            sms_countries: config.otp.sms_countries.clone(),
            exports: config.service.exports(),
        })
    }

    /// Returns the retention cutoff: data that ended before it is deleted.
    #[must_use]
    pub fn retention_cutoff(&self, now: Timestamp) -> Timestamp {
        now.plus_seconds(-24 * 3600 * self.history_days)
    }
}

/// The verification charge of cards, by currency.
#[derive(Clone, Copy, Debug)]
pub struct CardCharges {
    pub ngn: Minor,
    pub usd: Minor,
}

impl CardCharges {
    #[must_use]
    pub fn of(self, currency: &str) -> Minor {
        if currency == "USD" { self.usd } else { self.ngn }
    }
}

/// Limits and alarm thresholds of one-time passwords. 0: no limit.
#[derive(Clone, Copy, Debug)]
pub struct OtpLimits {
    /// Codes per destination of a company.
    pub sends_per_hour: i64,
    /// SMS per phone number of a company; the lower of both limits applies.
    pub sms_per_hour: i64,
    pub company_sends_per_hour: i64,
    /// Wrong attempts per key, across all codes sent under it.
    pub wrong_per_hour: i64,
    /// Codes sent within an hour from which an alarm is possible.
    pub alarm_sent: i64,
    /// Percentage of verified codes below which the alarm is raised.
    pub alarm_percent: i64,
}

/// Limits on existing export files.
#[derive(Clone, Copy, Debug)]
pub struct ExportLimits {
    pub company: Quota,
    pub all: Quota,
}

#[derive(Clone, Copy, Debug)]
pub struct Quota {
    pub files: i64,
    pub bytes: i64,
}
