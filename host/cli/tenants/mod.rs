//! Commands on companies and their event endpoints, keys, prices, provider accounts and wallets.

pub mod company;
pub mod event_endpoint;
pub mod key;
pub mod price;
pub mod provider;
pub mod wallet;
