//! Gauges of the state of the database, set by `monitor`.

use prometheus_client::{
    metrics::{counter::Counter, family::Family, gauge::Gauge},
    registry::{Registry, Unit},
};

use tollhouse_platform::{
    clock::Timestamp,
    telemetry::metric::{Label, Precise},
};

/// The channels whose gauges of pending charges and queued messages exist from the start.
pub const CHARGE_CHANNELS: [&str; 2] = ["card", "direct_debit"];
pub const MESSAGE_CHANNELS: [&str; 2] = ["email", "sms"];

/// The number of waiting items and the age of the oldest, by a label.
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
    /// 1 if the last poll of the database succeeded.
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
    pub fn register(&self, registry: &mut Registry) {
        let mut number = |name: &str, help: &str, gauge: &Gauge| {
            registry.register(name, help, gauge.clone());
        };
        number("store_up", "1 if the last poll of the database succeeded", &self.store_up);
        number(
            "ledger_unbalanced_transactions",
            "Ledger transactions whose entries do not sum to zero, by the last ledger scan",
            &self.unbalanced_transactions,
        );
        number(
            "ledger_wrong_balances",
            "Ledger balances that differ from the sum of their entries, by the last ledger scan",
            &self.wrong_balances,
        );
        number(
            "ledger_suspected_books",
            "Companies with a suspect ledger balance and too many entries to recompute at once",
            &self.suspected_books,
        );
        registry.register(
            "ledger_imbalance_minor",
            "Ledger imbalance by currency, in minor units",
            self.imbalance.clone(),
        );
        registry.register(
            "ledger_swept_entries",
            "Ledger entries checked by ledger scans",
            self.swept_entries.clone(),
        );
        for (name, help, time) in [
            ("store_looked_timestamp", "Time of the last poll of the database", &self.looked),
            (
                "ledger_checked_timestamp",
                "Time of the last ledger balance check",
                &self.ledger_checked,
            ),
            ("ledger_swept_timestamp", "Time of the last complete ledger scan", &self.ledger_swept),
        ] {
            registry.register_with_unit(name, help, Unit::Seconds, time.clone());
        }
        for (name, what, waiting) in [
            ("jobs_due", "Due jobs of all hosts that have not started", &self.jobs),
            ("event_deliveries_pending", "Pending event deliveries", &self.deliveries),
            ("payments_pending", "Pending payments with a scheduled verification", &self.payments),
            ("charges_pending", "Pending charges of cards and mandates", &self.charges),
            ("messages_pending", "Queued e-mails and text messages", &self.messages),
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

    /// Sets the imbalance of each currency; a currency that is not listed is balanced.
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
