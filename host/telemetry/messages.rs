//! E-mails and text messages: what came of the attempts to deliver them, and how long they waited.

use std::time::Duration;

use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family},
    registry::{Registry, Unit},
};

use super::metric::{Histograms, Label, waiting_seconds};

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Attempted {
    channel: &'static str,
    outcome: &'static str,
}

/// What came of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageOutcome {
    Delivered,
    /// It was given up.
    Failed,
    /// It will be tried again.
    Again,
}

impl MessageOutcome {
    fn name(self) -> &'static str {
        match self {
            MessageOutcome::Delivered => "delivered",
            MessageOutcome::Failed => "failed",
            MessageOutcome::Again => "again",
        }
    }
}

#[derive(Clone)]
pub struct MessageMetrics {
    attempts: Family<Attempted, Counter>,
    waited: Histograms<Label<&'static str>>,
}

impl Default for MessageMetrics {
    fn default() -> MessageMetrics {
        MessageMetrics {
            attempts: Family::default(),
            waited: Family::new_with_constructor(waiting_seconds),
        }
    }
}

impl MessageMetrics {
    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register(
            "message_attempts",
            "Attempts to deliver e-mails and text messages, by what came of them",
            self.attempts.clone(),
        );
        registry.register_with_unit(
            "message_delivery",
            "From when a message was queued to when it was handed over",
            Unit::Seconds,
            self.waited.clone(),
        );
    }

    /// `waited` is how long the message has been queued.
    pub fn attempted(&self, channel: &'static str, outcome: MessageOutcome, waited: Duration) {
        self.attempts.get_or_create(&Attempted { channel, outcome: outcome.name() }).inc();
        if outcome == MessageOutcome::Delivered {
            self.waited.get_or_create(&[("channel", channel)]).observe(waited.as_secs_f64());
        }
    }
}
