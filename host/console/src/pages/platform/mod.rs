//! The platform: hosts, plugins and their recorded calls, jobs, and the master key.

pub mod calls;
pub mod hosts;
pub mod jobs;
pub mod master_key;
pub mod plugins;
pub mod recordings;

use axum::{
    Router,
    routing::{get, post},
};

use crate::Console;

pub fn router() -> Router<Console> {
    Router::new()
        .route("/jobs", get(jobs::list))
        .route("/jobs/retry", post(jobs::retry))
        .route("/plugins", get(plugins::list))
        .route("/plugins/{plugin}", get(plugins::show))
        .route("/plugins/{plugin}/recordings", get(recordings::list))
        .route("/plugins/{plugin}/recordings/{recording}", get(recordings::show))
        .route("/hosts", get(hosts::list))
        .route("/master-key", get(master_key::show))
        .route("/master-key/rotate", post(master_key::rotate))
}
