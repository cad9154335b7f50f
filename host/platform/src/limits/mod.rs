//! Limits per key, such as a company or a client address: on rates, and on what each holds
//! concurrently.

pub mod owner;
pub mod rate;
