//! The WebAssembly runtime: engine, compiler, and the environment of a guest.

pub mod cache;
pub mod compile;
pub mod engine;
pub mod output;
pub mod progress;
pub mod session;
pub mod transcript;
pub mod vault;
