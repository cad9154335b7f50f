//! Calls of plugins: payment providers, SMS gateways and identity registers.

pub mod cause;
pub mod country_plugin;
pub mod executor;
pub mod log;
pub mod outcome;
pub mod plugin_handle;
pub mod records;
pub mod reply;
pub mod send;
pub mod session;
pub mod webhook;
