//! Metrics of the listeners, apart from requests.

use prometheus_client::{
    metrics::{counter::Counter, family::Family},
    registry::{Registry, Unit},
};

use tollhouse_platform::{
    clock::Timestamp,
    telemetry::metric::{FloatGauge, Label},
};

#[derive(Clone, Default)]
pub struct ListenerMetrics {
    certificate_expiry: Family<Label<&'static str>, FloatGauge>,
    refused: Family<Label<&'static str>, Counter>,
}

impl ListenerMetrics {
    pub fn register(&self, registry: &mut Registry) {
        registry.register_with_unit(
            "certificate_expiry_timestamp",
            "Expiry of the TLS certificate in use",
            Unit::Seconds,
            self.certificate_expiry.clone(),
        );
        registry.register(
            "connections_refused",
            "Connections closed because their client address exceeded its limit",
            self.refused.clone(),
        );
    }

    /// Records that `listener` closed a connection of an address above its limit.
    pub fn record_refused(&self, listener: &'static str) {
        self.refused.get_or_create(&[("listener", listener)]).inc();
    }

    /// Records the expiry of the certificate of `listener`, which is `public` or `internal`.
    pub fn set_certificate_expiry(&self, listener: &'static str, at: Timestamp) {
        let gauge = self.certificate_expiry.get_or_create(&[("listener", listener)]);
        gauge.set(at.unix_seconds() as f64);
    }
}
