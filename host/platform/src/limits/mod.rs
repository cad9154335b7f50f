//! Limits per key, such as a company or a client address: of rates, and of what each holds
//! concurrently.

pub mod owner;
pub mod rate;
