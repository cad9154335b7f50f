//! Commands on companies and their event endpoints, keys, members, prices, provider accounts and
//! wallets.

pub mod company;
pub mod event_endpoint;
pub mod key;
pub mod member;
pub mod price;
pub mod provider;
pub mod wallet;
