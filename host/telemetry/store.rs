//! Transactions of this host, whichever engine they are for.

use std::time::Duration;

use prometheus_client::{
    metrics::{counter::Counter, family::Family, histogram::Histogram},
    registry::{Registry, Unit},
};

use super::metric::{Histograms, Label, working_seconds};

#[derive(Clone)]
pub struct StoreMetrics {
    duration: Histograms<Label<&'static str>>,
    errors: Family<Label<&'static str>, Counter>,
    retries: Family<Label<&'static str>, Counter>,
    group: Histogram,
}

/// What a transaction may be.
const OPERATIONS: [&str; 2] = ["read", "write"];

impl Default for StoreMetrics {
    fn default() -> StoreMetrics {
        let metrics = StoreMetrics {
            duration: Family::new_with_constructor(working_seconds),
            errors: Family::default(),
            retries: Family::default(),
            group: Histogram::new([1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0]),
        };
        for operation in OPERATIONS {
            drop(metrics.errors.get_or_create(&[("operation", operation)]));
            drop(metrics.retries.get_or_create(&[("operation", operation)]));
        }
        metrics
    }
}

impl StoreMetrics {
    pub fn register(&self, registry: &mut Registry) {
        registry.register_with_unit(
            "store_duration",
            "Transactions with the wait for their turn and all tries",
            Unit::Seconds,
            self.duration.clone(),
        );
        registry.register(
            "store_errors",
            "Transactions that the database failed",
            self.errors.clone(),
        );
        registry.register(
            "store_retries",
            "Transactions that were run again",
            self.retries.clone(),
        );
        registry.register("store_group_size", "Writes that shared a commit", self.group.clone());
    }

    pub fn ended(&self, operation: &'static str, duration: Duration) {
        self.duration.get_or_create(&[("operation", operation)]).observe(duration.as_secs_f64());
    }

    pub fn failed(&self, operation: &'static str) {
        self.errors.get_or_create(&[("operation", operation)]).inc();
    }

    pub fn retried(&self, operation: &'static str) {
        self.retries.get_or_create(&[("operation", operation)]).inc();
    }

    /// So many writes were committed together.
    pub fn grouped(&self, writes: usize) {
        self.group.observe(writes as f64);
    }
}
