//! Loans, mandates, the recollections that repay loans, and virtual accounts.

pub mod loans;
pub mod mandates;
pub mod recollections;
pub mod virtual_accounts;
