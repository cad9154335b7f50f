//! Calls of plugins: payment providers, SMS gateways and identity registers.

pub mod callable;
pub mod calls;
pub mod outcome;
pub mod registers;
pub mod reply;
pub mod send;
