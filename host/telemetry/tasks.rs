//! Bugs in work that nobody waits for.

use prometheus_client::{
    metrics::{counter::Counter, family::Family},
    registry::Registry,
};

use super::metric::Label;

#[derive(Clone, Default)]
pub struct TaskMetrics {
    panics: Family<Label<&'static str>, Counter>,
}

impl TaskMetrics {
    pub fn register(&self, registry: &mut Registry) {
        let panics = self.panics.clone();
        registry.register("task_panics", "Panics of work that nobody waits for", panics);
    }

    /// Shown from now on, so that its first panic is seen as a change.
    pub fn began(&self, task: &'static str) {
        drop(self.panics.get_or_create(&[("task", task)]));
    }

    pub fn panicked(&self, task: &'static str) {
        self.panics.get_or_create(&[("task", task)]).inc();
    }
}
