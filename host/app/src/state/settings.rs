//! Settings as the areas read them: checked when the host starts.

use super::config::{ApprovalSettings, Config, OpenIdProvider, Otp, Service};
use tollhouse_platform::{clock::Timestamp, config::ConfigError, values::money::Minor};

#[derive(Clone)]
pub struct Settings {
    pub service: Service,
    pub otp: Otp,
    pub approvals: ApprovalSettings,
    /// The base of webhook URLs for providers.
    pub public_url: String,
    /// The base URL of the console.
    pub console_url: String,
    /// `None`: people sign in with passwords.
    pub openid_provider: Option<OpenIdProvider>,
    pub operator_token: String,
    /// Retention of plugin recordings, in hours; 0: no recordings.
    pub recording_hours: i64,
    /// Retention of the API log, in days; 0: no log.
    pub api_log_days: i64,
    /// Retention of the log of plugin calls, in days; 0: no log.
    pub call_log_days: i64,
}

impl Settings {
    pub fn new(config: &Config) -> Result<Settings, ConfigError> {
        Ok(Settings {
            service: config.service.clone(),
            otp: config.otp.clone(),
            approvals: config.approvals.clone(),
            public_url: config.listeners.public_url(),
            console_url: config.listeners.console_url(),
            openid_provider: config.oidc.provider(config.service.development)?,
            operator_token: config.operator_token.read()?,
            recording_hours: config.plugins.plugin_recording_retention_hours.into(),
            api_log_days: config.service.api_log_days.into(),
            call_log_days: config.service.call_log_days.into(),
        })
    }

    /// Returns the retention cutoff: data that ended before it is deleted.
    pub fn retention_cutoff(&self, now: Timestamp) -> Timestamp {
        now.plus_seconds(-24 * 3600 * i64::from(self.service.history_days))
    }

    /// Returns the verification charge of cards.
    pub fn card_charge(&self, currency: &str) -> Minor {
        if currency == "USD" { self.service.card_charge_usd } else { self.service.card_charge_ngn }
    }
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
