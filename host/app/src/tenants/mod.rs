//! Companies, their plans, wallets, provider accounts and API logs.

pub mod companies;
pub mod plans;
pub mod prelude;
pub mod providers;
pub mod requests;
pub mod wallet;
