//! Features for operators: operators and approvals, audit log, operator events, feeds, failing
//! jobs, plugins, recordings, search, monitoring.

pub mod audit;
pub mod clock;
pub mod feeds;
pub mod jobs;
pub mod master_key;
pub mod monitor;
pub mod operator_events;
pub mod operators;
pub mod plugins;
pub mod recordings;
pub mod search;
