//! Metrics of transactions, for either engine.

use std::time::Duration;

use super::{READ, WRITE};
use crate::telemetry::metric::*;

#[derive(Clone)]
pub struct StoreMetrics {
    duration: Histograms<Label<&'static str>>,
    errors: Family<Label<&'static str>, Counter>,
    retries: Family<Label<&'static str>, Counter>,
    round_trips: Counter,
    /// Writes per group commit.
    pub(super) group: Histogram,
}

impl Default for StoreMetrics {
    fn default() -> StoreMetrics {
        let metrics = StoreMetrics {
            duration: Family::new_with_constructor(work_time_histogram),
            errors: Family::default(),
            retries: Family::default(),
            round_trips: Counter::default(),
            group: Histogram::new([1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0]),
        };
        for operation in [READ, WRITE] {
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
            "Duration of transactions, including queueing and retries",
            Unit::Seconds,
            self.duration.clone(),
        );
        registry.register(
            "store_errors",
            "Transactions that failed because of the database",
            self.errors.clone(),
        );
        registry.register("store_retries", "Retries of transactions", self.retries.clone());
        let round_trips = self.round_trips.clone();
        registry.register("store_round_trips", "Requests to the PostgreSQL server", round_trips);
        registry.register("store_group_size", "Writes per group commit", self.group.clone());
    }

    pub fn record_duration(&self, operation: &'static str, duration: Duration) {
        self.duration.get_or_create(&[("operation", operation)]).observe(duration.as_secs_f64());
    }

    pub fn record_round_trips(&self, count: u64) {
        self.round_trips.inc_by(count);
    }

    pub fn record_error(&self, operation: &'static str) {
        self.errors.get_or_create(&[("operation", operation)]).inc();
    }

    pub fn record_retry(&self, operation: &'static str) {
        self.retries.get_or_create(&[("operation", operation)]).inc();
    }
}
