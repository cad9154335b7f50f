//! Outgoing connections: HTTP, e-mail and files.

pub mod egress;
pub mod files;
pub mod smtp;
