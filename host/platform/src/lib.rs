//! The foundation of the host: store, background work, outbound connections, cryptography, values,
//! telemetry and configuration primitives. It depends on no product, route or plugin.

pub mod background;
pub mod clock;
pub mod config;
pub mod crypto;
pub mod error;
pub mod limits;
pub mod outbound;
pub mod random;
pub mod store;
pub mod telemetry;
pub mod values;
