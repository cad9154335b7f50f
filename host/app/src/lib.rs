//! The product: its areas, the table of routes and the wiring.

pub mod customers;
pub mod identity;
pub mod lending;
pub mod messaging;
pub mod money;
pub mod operations;
pub mod routes;
pub mod state;
pub mod tenants;
pub mod webhooks;
pub mod wiring;
