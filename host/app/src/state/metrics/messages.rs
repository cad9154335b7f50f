//! Metrics of messages: delivery attempts by outcome, and time in the queue.

use std::time::Duration;

use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family},
    registry::{Registry, Unit},
};

use tollhouse_platform::telemetry::metric::{Histograms, Label, wait_time_histogram};

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct AttemptLabels {
    channel: &'static str,
    outcome: &'static str,
}

/// The outcome of a delivery attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageOutcome {
    Delivered,
    /// No further attempt is made.
    Failed,
    /// A retry is scheduled.
    Retried,
}

impl MessageOutcome {
    fn name(self) -> &'static str {
        match self {
            MessageOutcome::Delivered => "delivered",
            MessageOutcome::Failed => "failed",
            MessageOutcome::Retried => "again",
        }
    }
}

#[derive(Clone)]
pub struct MessageMetrics {
    attempts: Family<AttemptLabels, Counter>,
    waited: Histograms<Label<&'static str>>,
}

impl Default for MessageMetrics {
    fn default() -> MessageMetrics {
        MessageMetrics {
            attempts: Family::default(),
            waited: Family::new_with_constructor(wait_time_histogram),
        }
    }
}

impl MessageMetrics {
    pub fn register(&self, registry: &mut Registry) {
        registry.register(
            "message_attempts",
            "Delivery attempts of e-mails and text messages, by outcome",
            self.attempts.clone(),
        );
        registry.register_with_unit(
            "message_delivery",
            "Time from queueing to handover of delivered messages",
            Unit::Seconds,
            self.waited.clone(),
        );
    }

    /// Counts an attempt. `waited` is the time since the message was queued.
    pub fn count_attempt(&self, channel: &'static str, outcome: MessageOutcome, waited: Duration) {
        self.attempts.get_or_create(&AttemptLabels { channel, outcome: outcome.name() }).inc();
        if outcome == MessageOutcome::Delivered {
            self.waited.get_or_create(&[("channel", channel)]).observe(waited.as_secs_f64());
        }
    }
}
