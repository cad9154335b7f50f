//! Serves requests: router, pipeline, and the responses that all routes share.

pub mod auth;
pub mod gate;
pub mod headers;
pub mod health;
pub mod metrics;
pub mod request_id;
pub mod request_metrics;
pub mod room;
pub mod router;
pub mod shares;

use std::{
    ops::Deref,
    sync::{Arc, atomic::AtomicBool},
};

use self::{health::Readiness, request_metrics::RequestMetrics};
use crate::{listener::metrics::ListenerMetrics, settings::limits::Limits};
use tollhouse_platform::{
    background::tasks::Tasks,
    clock::Clock,
    crypto::seal::Sealer,
    random::Random,
    store::Store,
    telemetry::{Registry, Telemetry},
};

/// The server of one host, for both of its listeners. Cheap to clone.
#[derive(Clone)]
pub struct Server(Arc<Parts>);

/// The parts of a host that the server needs.
pub struct Parts {
    pub store: Store,
    pub clock: Clock,
    pub random: Random,
    pub sealer: Sealer,
    pub tasks: Tasks,
    pub limits: Limits,
    /// Registered in `telemetry`.
    pub metrics: Metrics,
    pub telemetry: Telemetry,
    pub readiness: Readiness,
    /// True during shutdown, when readiness returns 503.
    pub stopping: AtomicBool,
    /// True if this host runs jobs; readiness reports it.
    pub runs_jobs: bool,
}

/// Metrics of the server.
#[derive(Clone, Default)]
pub struct Metrics {
    pub requests: RequestMetrics,
    pub listeners: ListenerMetrics,
}

impl Metrics {
    pub fn register(&self, registry: &mut Registry) {
        self.requests.register(registry);
        self.listeners.register(registry);
    }
}

impl Server {
    #[must_use]
    pub fn new(parts: Parts) -> Server {
        Server(Arc::new(parts))
    }
}

impl Deref for Server {
    type Target = Parts;

    fn deref(&self) -> &Parts {
        &self.0
    }
}
