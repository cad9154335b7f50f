//! Loans, mandates, the recollections that repay loans, collection policies, and virtual accounts.

pub mod collections;
pub mod loans;
pub mod mandates;
pub mod recollections;
mod rejection;
pub mod virtual_accounts;
