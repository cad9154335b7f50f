//! Metrics of the product. The platform, the server and the plugins register their own.

pub mod alarms;
pub mod gauges;
pub mod messages;

use prometheus_client::registry::Registry;

use self::{alarms::Noted, gauges::Watched, messages::MessageMetrics};

#[derive(Default)]
pub struct Metrics {
    pub messages: MessageMetrics,
    pub watched: Watched,
    pub noted: Noted,
}

impl Metrics {
    pub fn register(&self, registry: &mut Registry) {
        self.messages.register(registry);
        self.watched.register(registry);
        self.noted.register(registry);
    }
}
