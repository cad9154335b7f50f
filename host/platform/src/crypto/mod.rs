//! Sealing of stored secrets, and the TLS provider.

pub mod seal;
pub mod tls;
