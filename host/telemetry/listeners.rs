//! The listeners themselves, beside the requests that come to them.

use prometheus_client::{
    metrics::family::Family,
    registry::{Registry, Unit},
};

use super::metric::{Label, Precise};
use crate::clock::Timestamp;

#[derive(Clone, Default)]
pub struct ListenerMetrics {
    certificate_expiry: Family<Label<&'static str>, Precise>,
}

impl ListenerMetrics {
    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register_with_unit(
            "certificate_expiry_timestamp",
            "When the TLS certificate in use ends",
            Unit::Seconds,
            self.certificate_expiry.clone(),
        );
    }

    /// `listener`, which is `public` or `internal`, has a certificate that is good until then.
    pub fn certificate_ends(&self, listener: &'static str, at: Timestamp) {
        let gauge = self.certificate_expiry.get_or_create(&[("listener", listener)]);
        gauge.set(at.unix_seconds() as f64);
    }
}
