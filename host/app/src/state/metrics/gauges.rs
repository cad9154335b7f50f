//! Gauges of the state of the database, set by `monitor`.

use prometheus_client::{
    metrics::{counter::Counter, family::Family, gauge::Gauge},
    registry::{Registry, Unit},
};

use tollhouse_platform::{
    clock::Timestamp,
    telemetry::metric::{FloatGauge, Label},
};

/// The channels whose gauges of pending charges and queued messages exist from the start.
pub const CHARGE_CHANNELS: [&str; 2] = ["card", "direct_debit"];
pub const MESSAGE_CHANNELS: [&str; 2] = ["email", "sms"];

/// The number of waiting items and the age of the oldest, by a label.
#[derive(Clone, Default)]
pub struct BacklogGauges {
    count: Family<Label<&'static str>, Gauge>,
    oldest: Family<Label<&'static str>, FloatGauge>,
    /// The name of the label.
    by: &'static str,
}

impl BacklogGauges {
    fn by(by: &'static str) -> BacklogGauges {
        BacklogGauges { by, ..BacklogGauges::default() }
    }

    pub fn set(&self, value: &'static str, count: i64, oldest: Option<Timestamp>, now: Timestamp) {
        let age = oldest.map_or(0.0, |oldest| seconds(Timestamp(now.0 - oldest.0)));
        self.count.get_or_create(&[(self.by, value)]).set(count);
        self.oldest.get_or_create(&[(self.by, value)]).set(age);
    }
}

#[derive(Clone)]
pub struct MonitorGauges {
    /// 1 if the last poll of the database succeeded.
    pub store_up: Gauge,
    polled_at: FloatGauge,
    pub jobs: BacklogGauges,
    pub deliveries: BacklogGauges,
    pub payments: BacklogGauges,
    pub charges: BacklogGauges,
    pub messages: BacklogGauges,
    imbalance: Family<Label<String>, Gauge>,
    pub unbalanced_transactions: Gauge,
    pub wrong_balances: Gauge,
    pub suspect_companies: Gauge,
    pub scanned_entries: Counter,
    ledger_checked_at: FloatGauge,
    ledger_scanned_at: FloatGauge,
}

impl Default for MonitorGauges {
    fn default() -> MonitorGauges {
        MonitorGauges {
            store_up: Gauge::default(),
            polled_at: FloatGauge::default(),
            jobs: BacklogGauges::by("kind"),
            deliveries: BacklogGauges::by("attempted"),
            payments: BacklogGauges::by("age"),
            charges: BacklogGauges::by("channel"),
            messages: BacklogGauges::by("channel"),
            imbalance: Family::default(),
            unbalanced_transactions: Gauge::default(),
            wrong_balances: Gauge::default(),
            suspect_companies: Gauge::default(),
            scanned_entries: Counter::default(),
            ledger_checked_at: FloatGauge::default(),
            ledger_scanned_at: FloatGauge::default(),
        }
    }
}

impl MonitorGauges {
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
            "ledger_suspect_companies",
            "Companies with a suspect ledger balance and too many entries to recompute at once",
            &self.suspect_companies,
        );
        registry.register(
            "ledger_imbalance_minor",
            "Ledger imbalance by currency, in minor units",
            self.imbalance.clone(),
        );
        registry.register(
            "ledger_scan_entries",
            "Ledger entries checked by ledger scans",
            self.scanned_entries.clone(),
        );
        for (name, help, time) in [
            ("store_looked_timestamp", "Time of the last poll of the database", &self.polled_at),
            (
                "ledger_checked_timestamp",
                "Time of the last ledger balance check",
                &self.ledger_checked_at,
            ),
            (
                "ledger_scan_timestamp",
                "Time of the last complete ledger scan",
                &self.ledger_scanned_at,
            ),
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

    pub fn set_polled(&self, now: Timestamp) {
        self.polled_at.set(seconds(now));
    }

    /// Sets the imbalance of each currency; a currency that is not listed is balanced.
    pub fn set_imbalances(&self, off: Vec<(String, i64)>, now: Timestamp) {
        self.imbalance.clear();
        for (currency, minor) in off {
            self.imbalance.get_or_create(&[("currency", currency)]).set(minor);
        }
        self.ledger_checked_at.set(seconds(now));
    }

    pub fn set_ledger_scanned(&self, now: Timestamp) {
        self.ledger_scanned_at.set(seconds(now));
    }
}

fn seconds(time: Timestamp) -> f64 {
    time.0 as f64 / 1_000.0
}
