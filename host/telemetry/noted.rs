//! What the slices note: alarms, for which somebody must be woken, and what the reconciler found.

use prometheus_client::{
    metrics::{counter::Counter, family::Family},
    registry::Registry,
};

use super::metric::Label;

/// Each is shown from the start, so that its first case is seen as a change.
const ALARMS: [&str; 9] = [
    "amount mismatch",
    "card not revoked",
    "card refund failed",
    "currency mismatch",
    "foreign payment",
    "refund failed",
    "refund still pending",
    "repaid twice",
    "repayment reversed",
];

/// The same, of what operators are told.
const TOLD: [&str; 4] =
    ["card.refund_failed", "loan.not_collected", "otp.few_verified", "wallet.low_balance"];

#[derive(Clone)]
pub struct Noted {
    alarms: Family<Label<&'static str>, Counter>,
    checks: Family<Label<&'static str>, Counter>,
    told: Family<Label<&'static str>, Counter>,
    codes: Family<Label<&'static str>, Counter>,
}

impl Default for Noted {
    fn default() -> Noted {
        let noted = Noted {
            alarms: Family::default(),
            checks: Family::default(),
            codes: Family::default(),
            told: Family::default(),
        };
        for alarm in ALARMS {
            drop(noted.alarms.get_or_create(&[("alarm", alarm)]));
        }
        for kind in TOLD {
            drop(noted.told.get_or_create(&[("kind", kind)]));
        }
        noted
    }
}

impl Noted {
    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register("alarms", "Alarms about payments and refunds", self.alarms.clone());
        registry.register(
            "payment_checks",
            "What the reconciler found when it asked about a payment",
            self.checks.clone(),
        );
        registry.register(
            "operator_events",
            "What operators were told in the stream of events",
            self.told.clone(),
        );
        registry.register(
            "otp",
            "One-time passwords that were sent, and what became of tries",
            self.codes.clone(),
        );
    }

    /// Goes with a line in the log that has `alarm=what`.
    pub fn alarm(&self, what: &'static str) {
        self.alarms.get_or_create(&[("alarm", what)]).inc();
    }

    pub fn told(&self, kind: &'static str) {
        self.told.get_or_create(&[("kind", kind)]).inc();
    }

    /// A one-time password was `sent`, or a try was `verified`, `wrong`, `cancelled` or `throttled`.
    pub fn code(&self, what: &'static str) {
        self.codes.get_or_create(&[("outcome", what)]).inc();
    }

    pub fn payment_checked(&self, outcome: &'static str) {
        self.checks.get_or_create(&[("outcome", outcome)]).inc();
    }
}
