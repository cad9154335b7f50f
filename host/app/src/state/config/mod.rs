//! All settings of a host, each defined once: its flag, its variable (`TOLLHOUSE_…`) and its key in
//! the settings file share a name. `platform::config::layers` decides which one applies.
//!
//! A setting has a group, a unit (`value_name`) and a default, and is listed in
//! `docs/OPERATING.md`, which a test checks. Secrets come from files or variables, never from
//! flags.

mod approvals;
pub mod check;
pub mod describe;
mod oidc;
mod otp;
mod remote;
mod service;

use clap::Args;

pub use self::{
    approvals::{ApprovalSettings, ApprovalSubject},
    oidc::{OpenIdProvider, OpenIdSettings},
    otp::Otp,
    remote::Remote,
    service::{FeeBearer, Service},
};
use tollhouse_http::{ServerLimits, settings::listeners::ListenerSettings};
pub use tollhouse_platform::config::ConfigError;
use tollhouse_platform::config::{
    database::DatabaseSettings,
    email::EmailSettings,
    secrets::{MasterKey, OperatorToken},
    telemetry::TelemetrySettings,
};
use tollhouse_plugins::limits::settings::PluginSettings;

#[derive(Args, Clone, Debug)]
pub struct Config {
    #[command(flatten)]
    pub database: DatabaseSettings,
    #[command(flatten)]
    pub listeners: ListenerSettings,
    #[command(flatten)]
    pub requests: ServerLimits,
    #[command(flatten)]
    pub operator_token: OperatorToken,
    #[command(flatten)]
    pub master_key: MasterKey,
    #[command(flatten)]
    pub service: Service,
    #[command(flatten)]
    pub approvals: ApprovalSettings,
    #[command(flatten)]
    pub oidc: OpenIdSettings,
    #[command(flatten)]
    pub email: EmailSettings,
    #[command(flatten)]
    pub otp: Otp,
    #[command(flatten)]
    pub plugins: PluginSettings,
    #[command(flatten)]
    pub telemetry: TelemetrySettings,
}
