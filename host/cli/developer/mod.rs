//! Commands for developers of a company's programs. They use the API with the company's key.

mod access;
pub mod listen;
pub mod trigger;
