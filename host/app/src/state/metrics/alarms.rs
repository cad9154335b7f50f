//! Counters of alarms, operator events, payment verifications and one-time passwords.

use prometheus_client::{
    metrics::{counter::Counter, family::Family},
    registry::Registry,
};

use tollhouse_platform::telemetry::metric::Label;

/// All alarms. Each counter starts at 0, so that its first alarm is an increase.
const ALARMS: [&str; 9] = [
    "amount mismatch", "card not revoked", "card refund failed", "currency mismatch",
    "foreign payment", "refund failed", "refund still pending", "repaid twice",
    "repayment reversed",
];

/// All kinds of operator events, for the same reason.
const OPERATOR_EVENTS: [&str; 4] =
    ["card.refund_failed", "loan.not_collected", "otp.few_verified", "wallet.low_balance"];

#[derive(Clone)]
pub struct AlarmMetrics {
    alarms: Family<Label<&'static str>, Counter>,
    checks: Family<Label<&'static str>, Counter>,
    operator_events: Family<Label<&'static str>, Counter>,
    codes: Family<Label<&'static str>, Counter>,
}

impl Default for AlarmMetrics {
    fn default() -> AlarmMetrics {
        let noted = AlarmMetrics {
            alarms: Family::default(),
            checks: Family::default(),
            codes: Family::default(),
            operator_events: Family::default(),
        };
        for alarm in ALARMS {
            drop(noted.alarms.get_or_create(&[("alarm", alarm)]));
        }
        for kind in OPERATOR_EVENTS {
            drop(noted.operator_events.get_or_create(&[("kind", kind)]));
        }
        noted
    }
}

impl AlarmMetrics {
    pub fn register(&self, registry: &mut Registry) {
        registry.register("alarms", "Alarms about payments and refunds", self.alarms.clone());
        registry.register(
            "payment_checks",
            "Payment verifications by the settlement job, by outcome",
            self.checks.clone(),
        );
        registry.register(
            "operator_events",
            "Operator events, by kind",
            self.operator_events.clone(),
        );
        registry.register(
            "otp",
            "One-time passwords sent, and attempts by outcome",
            self.codes.clone(),
        );
    }

    /// Counts an alarm. The caller also logs it, with the field `alarm`.
    pub fn count_alarm(&self, what: &'static str) {
        self.alarms.get_or_create(&[("alarm", what)]).inc();
    }

    pub fn count_operator_event(&self, kind: &'static str) {
        self.operator_events.get_or_create(&[("kind", kind)]).inc();
    }

    /// Counts a code as `sent`, or an attempt as `verified`, `wrong`, `cancelled` or `throttled`.
    pub fn count_code(&self, what: &'static str) {
        self.codes.get_or_create(&[("outcome", what)]).inc();
    }

    pub fn count_payment_check(&self, outcome: &'static str) {
        self.checks.get_or_create(&[("outcome", outcome)]).inc();
    }
}
