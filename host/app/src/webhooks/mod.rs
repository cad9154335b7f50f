//! Webhooks: outgoing events for companies, incoming webhooks of providers.

pub mod incoming;
pub mod outgoing;
