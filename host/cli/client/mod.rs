//! Client of a running host.

pub mod arguments;
pub mod certificate;
pub mod host;
