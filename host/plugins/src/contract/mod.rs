//! The released WIT contract and its conversion to the types of the host.

pub mod drift;
pub mod v1;
