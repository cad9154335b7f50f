//! Serves requests: router, pipeline, and the responses that all routes share.

pub mod access_log;
pub mod auth;
pub mod concurrency;
pub mod headers;
pub mod health;
pub mod metrics;
pub mod pages;
pub mod pipeline;
pub mod request_log;
pub mod request_metrics;
pub mod responses;
pub mod router;

use std::sync::{Arc, atomic::AtomicBool};

use self::{health::Readiness, request_log::RequestRecorder, request_metrics::RequestMetrics};
use crate::{ServerLimits, listener::metrics::ListenerMetrics};
use tollhouse_platform::{
    background::tasks::Tasks,
    clock::Clock,
    crypto::seal::Sealer,
    random::Random,
    store::Store,
    telemetry::{Registry, Telemetry},
};

/// The server of one host, for both of its listeners.
pub type Server = Arc<ServerParts>;

/// The parts of a host that the server needs.
pub struct ServerParts {
    pub store: Store,
    pub clock: Clock,
    pub random: Random,
    pub sealer: Sealer,
    pub tasks: Tasks,
    pub limits: ServerLimits,
    /// Registered in `telemetry`.
    pub metrics: ServerMetrics,
    /// `None`: requests are not logged for their companies.
    pub request_recorder: Option<RequestRecorder>,
    pub telemetry: Telemetry,
    pub readiness: Readiness,
    /// True during shutdown, when readiness returns 503.
    pub stopping: AtomicBool,
    /// True if this host runs jobs; readiness reports it.
    pub runs_jobs: bool,
}

/// Metrics of the server.
#[derive(Clone, Default)]
pub struct ServerMetrics {
    pub requests: RequestMetrics,
    pub listeners: ListenerMetrics,
}

impl ServerMetrics {
    pub fn register(&self, registry: &mut Registry) {
        self.requests.register(registry);
        self.listeners.register(registry);
    }
}
