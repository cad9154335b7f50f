//! Companies, their plans, wallets and provider accounts.

pub mod companies;
pub mod plans;
pub mod prelude;
pub mod providers;
pub mod wallet;
