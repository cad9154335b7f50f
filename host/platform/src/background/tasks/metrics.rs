//! Metrics of background tasks.

use prometheus_client::{
    metrics::{counter::Counter, family::Family},
    registry::Registry,
};

use crate::telemetry::metric::Label;

#[derive(Clone, Default)]
pub struct TaskMetrics {
    panics: Family<Label<&'static str>, Counter>,
}

impl TaskMetrics {
    pub fn register(&self, registry: &mut Registry) {
        let panics = self.panics.clone();
        registry.register("task_panics", "Panics of background tasks", panics);
    }

    /// Exports the counter as 0, so that the first panic is visible as an increase.
    pub fn register_task(&self, task: &'static str) {
        drop(self.panics.get_or_create(&[("task", task)]));
    }

    pub fn record_panic(&self, task: &'static str) {
        self.panics.get_or_create(&[("task", task)]).inc();
    }
}
