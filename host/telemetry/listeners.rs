//! The listeners themselves, beside the requests that come to them.

use prometheus_client::{
    metrics::{counter::Counter, family::Family},
    registry::{Registry, Unit},
};

use super::metric::{Label, Precise};
use crate::clock::Timestamp;

#[derive(Clone, Default)]
pub struct ListenerMetrics {
    certificate_expiry: Family<Label<&'static str>, Precise>,
    refused: Family<Label<&'static str>, Counter>,
}

impl ListenerMetrics {
    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register_with_unit(
            "certificate_expiry_timestamp",
            "When the TLS certificate in use ends",
            Unit::Seconds,
            self.certificate_expiry.clone(),
        );
        registry.register(
            "connections_refused",
            "Connections that were closed because their client address had too many",
            self.refused.clone(),
        );
    }

    /// `listener` has closed a connection of an address that had too many.
    pub fn refused(&self, listener: &'static str) {
        self.refused.get_or_create(&[("listener", listener)]).inc();
    }

    /// `listener`, which is `public` or `internal`, has a certificate that is good until then.
    pub fn certificate_ends(&self, listener: &'static str, at: Timestamp) {
        let gauge = self.certificate_expiry.get_or_create(&[("listener", listener)]);
        gauge.set(at.unix_seconds() as f64);
    }
}
