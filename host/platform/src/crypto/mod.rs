//! Sealing of stored secrets, and TLS.

pub mod seal;
pub mod tls;
