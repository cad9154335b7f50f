//! Commands for a company's developers. They use the API with the company's key.

mod access;
pub mod listen;
pub mod trigger;
