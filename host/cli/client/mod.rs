//! Client of the internal interface of a running host.

pub mod arguments;
pub mod certificate;
pub mod host;
