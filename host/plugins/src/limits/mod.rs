//! Limits on plugins: CPU time, memory, concurrency, and the circuit breaker.
pub mod breaker;
pub mod bulkhead;
pub mod cpu;
pub mod health;
pub mod pace;
pub mod places;
pub mod recent;
