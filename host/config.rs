//! Every setting of a host, defined once: as a flag, whose name is also that of the variable (`TOLLHOUSE_…`) and of the key in
//! the settings file. [`layers`] says which of them counts, [`describe`] what there is.
//!
//! A setting goes into the group of its topic, with its unit as `value_name` and its default; `docs/OPERATING.md` lists it
//! (a test says how to write that list anew). Secrets come from files or variables, never from flags.

pub mod check;
mod database;
pub mod describe;
mod email;
pub mod layers;
mod listeners;
mod otp;
mod plugins;
mod remote;
mod requests;
mod secrets;
mod service;
mod telemetry;

use clap::Args;

pub use self::{
    database::{Database, DatabaseUrl, without_password},
    email::Email,
    listeners::Listeners,
    otp::Otp,
    plugins::Plugins,
    remote::Remote,
    requests::Requests,
    secrets::{MasterKey, OperatorToken, SmtpPassword},
    service::Service,
    telemetry::{LogFormat, Telemetry},
};

#[derive(Args, Clone, Debug)]
pub struct Config {
    #[command(flatten)]
    pub database: Database,
    #[command(flatten)]
    pub listeners: Listeners,
    #[command(flatten)]
    pub requests: Requests,
    #[command(flatten)]
    pub operator_token: OperatorToken,
    #[command(flatten)]
    pub master_key: MasterKey,
    #[command(flatten)]
    pub service: Service,
    #[command(flatten)]
    pub email: Email,
    #[command(flatten)]
    pub otp: Otp,
    #[command(flatten)]
    pub plugins: Plugins,
    #[command(flatten)]
    pub telemetry: Telemetry,
}

/// A setting that is missing or cannot be used; the text says which and what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ConfigError(pub String);
