//! Metrics of the product. The platform, the server and the plugins register their own.

pub mod alarms;
pub mod gauges;
pub mod messages;

use prometheus_client::registry::Registry;

use self::{alarms::AlarmMetrics, gauges::MonitorGauges, messages::MessageMetrics};

#[derive(Default)]
pub struct Metrics {
    pub messages: MessageMetrics,
    pub monitor: MonitorGauges,
    pub alarms: AlarmMetrics,
}

impl Metrics {
    pub fn register(&self, registry: &mut Registry) {
        self.messages.register(registry);
        self.monitor.register(registry);
        self.alarms.register(registry);
    }
}
