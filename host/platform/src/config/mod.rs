//! Configuration primitives: layers of values, secrets, and the settings of the platform.

pub mod database;
pub mod email;
pub mod layers;
pub mod secrets;
pub mod telemetry;

/// A missing or invalid setting; the text names it and says what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ConfigError(pub String);
