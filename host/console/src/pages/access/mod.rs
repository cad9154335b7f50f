//! Who may use the console, and what they did.

pub mod approvals;
pub mod audit;
pub mod operators;
pub mod sign_in;
pub mod welcome;
