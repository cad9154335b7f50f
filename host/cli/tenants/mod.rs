//! Commands on companies and their keys, prices, provider accounts and wallets.

pub mod company;
pub mod key;
pub mod price;
pub mod provider;
pub mod wallet;
