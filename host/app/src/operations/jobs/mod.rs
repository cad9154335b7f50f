//! Failing jobs, for operators.

pub mod api;
mod store;
