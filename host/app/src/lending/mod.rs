//! Loans, mandates, and the recollections that repay loans.

pub mod loans;
pub mod mandates;
pub mod recollections;
