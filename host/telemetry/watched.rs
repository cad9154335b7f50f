//! What is seen by looking at the database: gauges that `monitor` sets.

use prometheus_client::{
    metrics::{counter::Counter, family::Family, gauge::Gauge},
    registry::{Registry, Unit},
};

use super::metric::{Label, Precise};
use crate::clock::Timestamp;

/// How many of something wait, and for how long the oldest has.
#[derive(Clone, Default)]
pub struct Waiting {
    count: Family<Label<&'static str>, Gauge>,
    oldest: Family<Label<&'static str>, Precise>,
    /// The name of the label.
    by: &'static str,
}

impl Waiting {
    fn by(by: &'static str) -> Waiting {
        Waiting { by, ..Waiting::default() }
    }

    pub fn set(&self, value: &'static str, count: i64, oldest: Option<Timestamp>, now: Timestamp) {
        let age = oldest.map_or(0.0, |oldest| seconds(Timestamp(now.0 - oldest.0)));
        self.count.get_or_create(&[(self.by, value)]).set(count);
        self.oldest.get_or_create(&[(self.by, value)]).set(age);
    }
}

#[derive(Clone)]
pub struct Watched {
    /// Whether the last look at the database went well.
    pub store_up: Gauge,
    looked: Precise,
    pub jobs: Waiting,
    pub deliveries: Waiting,
    pub payments: Waiting,
    pub charges: Waiting,
    pub messages: Waiting,
    imbalance: Family<Label<String>, Gauge>,
    pub unbalanced_transactions: Gauge,
    pub wrong_balances: Gauge,
    pub suspected_books: Gauge,
    pub swept_entries: Counter,
    ledger_checked: Precise,
    ledger_swept: Precise,
}

impl Default for Watched {
    fn default() -> Watched {
        Watched {
            store_up: Gauge::default(),
            looked: Precise::default(),
            jobs: Waiting::by("kind"),
            deliveries: Waiting::by("attempted"),
            payments: Waiting::by("age"),
            charges: Waiting::by("channel"),
            messages: Waiting::by("channel"),
            imbalance: Family::default(),
            unbalanced_transactions: Gauge::default(),
            wrong_balances: Gauge::default(),
            suspected_books: Gauge::default(),
            swept_entries: Counter::default(),
            ledger_checked: Precise::default(),
            ledger_swept: Precise::default(),
        }
    }
}

impl Watched {
    pub(super) fn register(&self, registry: &mut Registry) {
        let mut number = |name: &str, help: &str, gauge: &Gauge| {
            registry.register(name, help, gauge.clone());
        };
        number("store_up", "1 when the last look at the database went well", &self.store_up);
        number(
            "ledger_unbalanced_transactions",
            "Transactions whose entries do not sum to zero, by the last sweep",
            &self.unbalanced_transactions,
        );
        number(
            "ledger_wrong_balances",
            "Balances that are not the sum of their entries, by the last sweep",
            &self.wrong_balances,
        );
        number(
            "ledger_suspected_books",
            "Books with a balance that seems wrong, of more entries than can be summed up at once",
            &self.suspected_books,
        );
        registry.register(
            "ledger_imbalance_minor",
            "What the books of a currency are off by, in minor units",
            self.imbalance.clone(),
        );
        registry.register(
            "ledger_swept_entries",
            "Ledger entries that were checked",
            self.swept_entries.clone(),
        );
        for (name, help, time) in [
            ("store_looked_timestamp", "When the database was last looked at", &self.looked),
            (
                "ledger_checked_timestamp",
                "When the books were last summed up",
                &self.ledger_checked,
            ),
            ("ledger_swept_timestamp", "When a sweep last reached the end", &self.ledger_swept),
        ] {
            registry.register_with_unit(name, help, Unit::Seconds, time.clone());
        }
        for (name, what, waiting) in [
            ("jobs_due", "Jobs of all hosts that are due and not begun", &self.jobs),
            ("event_deliveries_pending", "Event deliveries that wait", &self.deliveries),
            ("payments_pending", "Payments that the reconciler still asks about", &self.payments),
            (
                "charges_pending",
                "Charges of cards and mandates whose outcome is not known",
                &self.charges,
            ),
            ("messages_pending", "E-mails and text messages that wait", &self.messages),
        ] {
            registry.register(name, what, waiting.count.clone());
            let oldest = format!("{name}_oldest");
            let what = format!("{what}: age of the oldest");
            registry.register_with_unit(oldest, what, Unit::Seconds, waiting.oldest.clone());
        }
    }

    pub fn looked(&self, now: Timestamp) {
        self.looked.set(seconds(now));
    }

    /// The sum of what is off in each currency; a currency that was off and is not named is balanced again.
    pub fn ledger_checked(&self, off: Vec<(String, i64)>, now: Timestamp) {
        self.imbalance.clear();
        for (currency, minor) in off {
            self.imbalance.get_or_create(&[("currency", currency)]).set(minor);
        }
        self.ledger_checked.set(seconds(now));
    }

    pub fn ledger_swept(&self, now: Timestamp) {
        self.ledger_swept.set(seconds(now));
    }
}

fn seconds(time: Timestamp) -> f64 {
    time.0 as f64 / 1_000.0
}
