//! Event endpoints: URLs that receive a company's events beside its `event_url`, each with its own
//! secret and the types of events that it receives.

pub mod api;
mod store;

pub use self::{
    api::EventType,
    store::{Endpoint, EndpointSecret, SEALED, list},
};

/// Maximum number of endpoints of a company.
pub const MAX_ENDPOINTS: usize = 10;
