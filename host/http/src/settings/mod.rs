//! Settings of the listeners and the limits on requests.

pub mod limits;
pub mod listeners;
pub mod requests;
