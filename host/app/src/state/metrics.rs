//! Metrics of the product. The platform, the server and the plugins register their own.

use std::time::Duration;

use prometheus_client::{
    metrics::{counter::Counter, family::Family, gauge::Gauge},
    registry::{Registry, Unit},
};

use tollhouse_platform::{
    clock::Timestamp,
    telemetry::metric::{FloatGauge, Histograms, Label, wait_time_histogram},
};

/// All alarms. Each counter starts at 0, so that its first alarm is an increase.
const ALARMS: [&str; 15] = [
    "amount mismatch", "card not revoked", "card refund failed", "currency mismatch",
    "charge without an owner", "foreign payment", "mandate not cancelled", "paid twice",
    "refund failed", "refund still pending", "repaid twice", "repayment reversed",
    "unmatched transfer", "unverified charge", "virtual account not closed",
];

/// All kinds of operator events, for the same reason.
const OPERATOR_EVENTS: [&str; 5] = [
    "card.refund_failed", "loan.not_collected", "otp.few_verified", "payment.refund_failed",
    "wallet.low_balance",
];

const PENDING_AGES: &[&str] = &["5m", "1h", "24h", "72h"];
const CHARGE_CHANNELS: &[&str] = &["card", "direct_debit"];
const REFUND_STATES: &[&str] = &["requested", "pending", "stalled"];
const MESSAGE_CHANNELS: &[&str] = &["email", "sms"];

/// Backlogs: name, help, label, and the values of the label that are shown even without items.
const BACKLOGS: [(&str, &str, &str, &[&str]); 9] = [
    ("jobs_due", "Due jobs of all hosts that have not started", "kind", &[]),
    ("event_deliveries_pending", "Pending event deliveries", "attempted", &[]),
    ("payments_pending", "Pending payments with a scheduled verification", "age", PENDING_AGES),
    ("charges_pending", "Pending charges of cards and mandates", "channel", CHARGE_CHANNELS),
    ("refunds_open", "Refunds without an outcome", "state", REFUND_STATES),
    ("exceptions_open", "Open exceptions of charges", "kind", &[]),
    ("messages_pending", "Queued e-mails and text messages", "channel", MESSAGE_CHANNELS),
    ("jobs_failing", "Jobs with ten failures in a row or more", "kind", &[]),
    ("jobs_parked", "Parked jobs, which only operators run again", "kind", &[]),
];

type Counters<const LABELS: usize> = Family<[(&'static str, &'static str); LABELS], Counter>;

/// Declares metrics. Each row: name, type, value if it is not the default one, help, and unit.
macro_rules! metrics {
    ($($name:ident: $type:ty $(= $value:expr)?, $help:literal $(, $unit:ident)?;)*) => {
        pub struct Metrics {
            $(#[doc = $help] pub $name: $type,)*
            backlogs: [BacklogGauges; BACKLOGS.len()],
        }

        impl Default for Metrics {
            fn default() -> Metrics {
                let backlogs = Default::default();
                let metrics = Metrics { $($name: metrics!(@value $($value)?),)* backlogs };
                for alarm in ALARMS {
                    drop(metrics.alarms.get_or_create(&[("alarm", alarm)]));
                }
                for kind in OPERATOR_EVENTS {
                    drop(metrics.operator_events.get_or_create(&[("kind", kind)]));
                }
                metrics
            }
        }

        impl Metrics {
            pub fn register(&self, registry: &mut Registry) {
                $(metrics!(@register registry, stringify!($name), $help, self.$name $(, $unit)?);)*
                for ((name, help, ..), gauges) in BACKLOGS.into_iter().zip(&self.backlogs) {
                    registry.register(name, help, gauges.count.clone());
                    let help = format!("{help}: age of the oldest");
                    let (name, oldest) = (format!("{name}_oldest"), gauges.oldest.clone());
                    registry.register_with_unit(name, help, Unit::Seconds, oldest);
                }
            }
        }
    };
    (@value) => { Default::default() };
    (@value $value:expr) => { $value };
    (@register $registry:ident, $name:expr, $help:literal, $metric:expr) => {
        $registry.register($name, $help, $metric.clone())
    };
    (@register $registry:ident, $name:expr, $help:literal, $metric:expr, $unit:ident) => {
        $registry.register_with_unit($name, $help, Unit::$unit, $metric.clone())
    };
}

metrics! {
    message_attempts: Counters<2>, "Delivery attempts of e-mails and text messages, by outcome";
    message_delivery: Histograms<Label<&'static str>>
        = Family::new_with_constructor(wait_time_histogram),
        "Time from queueing to handover of delivered messages", Seconds;
    store_up: Gauge, "1 if the last poll of the database succeeded";
    ledger_wrong_balances: Gauge,
        "Ledger balances that differ from the sum of their entries, by the last ledger scan";
    ledger_suspect_companies: Gauge,
        "Companies with a suspect ledger balance and too many entries to recompute at once";
    ledger_imbalance_minor: Family<Label<String>, Gauge>,
        "Ledger imbalance by currency, in minor units";
    ledger_scan_transactions: Counter, "Ledger transactions checked by ledger scans";
    store_polled_timestamp: FloatGauge, "Time of the last poll of the database", Seconds;
    ledger_checked_timestamp: FloatGauge, "Time of the last ledger balance check", Seconds;
    ledger_scan_timestamp: FloatGauge, "Time of the last complete ledger scan", Seconds;
    alarms: Counters<1>, "Alarms about payments and refunds";
    charge_checks: Counters<2>, "Scheduled verifications of charges, by owner and outcome";
    operator_events: Counters<1>, "Operator events, by kind";
    api_log_dropped: Counter, "API requests missing in the API log: buffer full, or not saved";
    call_log_dropped: Counter, "Plugin calls missing in the log of calls: buffer full, or not saved";
    otp: Counters<1>, "One-time passwords sent, and attempts by outcome";
}

/// The number of waiting items and the age of the oldest, by a label.
#[derive(Default)]
struct BacklogGauges {
    count: Family<Label<String>, Gauge>,
    oldest: Family<Label<String>, FloatGauge>,
}

/// Value of the label, number of items, and time of the oldest.
pub type Backlog = (String, i64, Option<Timestamp>);

impl Metrics {
    /// Counts an alarm. The caller also logs it, with the field `alarm`.
    pub fn count_alarm(&self, what: &'static str) {
        self.alarms.get_or_create(&[("alarm", what)]).inc();
    }

    pub fn count_operator_event(&self, kind: &'static str) {
        self.operator_events.get_or_create(&[("kind", kind)]).inc();
    }

    /// Counts a code as `sent`, or an attempt as `verified`, `wrong`, `cancelled` or `throttled`.
    pub fn count_code(&self, what: &'static str) {
        self.otp.get_or_create(&[("outcome", what)]).inc();
    }

    pub fn count_charge_check(&self, owner: &'static str, outcome: &'static str) {
        self.charge_checks.get_or_create(&[("owner", owner), ("outcome", outcome)]).inc();
    }

    /// Counts an attempt to deliver a message as `delivered`, `failed` (no further attempt is made)
    /// or `again` (a retry is scheduled). `waited` is the time since the message was queued.
    pub fn count_message(&self, channel: &'static str, outcome: &'static str, waited: Duration) {
        self.message_attempts.get_or_create(&[("channel", channel), ("outcome", outcome)]).inc();
        if outcome == "delivered" {
            self.message_delivery
                .get_or_create(&[("channel", channel)])
                .observe(waited.as_secs_f64());
        }
    }

    /// Sets the gauges of the backlogs, which are in the order of jobs, deliveries, payments,
    /// charges, refunds, exceptions, messages, failing jobs and parked ones.
    pub fn set_backlogs(&self, backlogs: [Vec<Backlog>; BACKLOGS.len()], now: Timestamp) {
        for (n, mut backlog) in backlogs.into_iter().enumerate() {
            let (_, _, label, values) = BACKLOGS[n];
            let is_missing = |value: &&&str| backlog.iter().all(|(seen, ..)| seen != **value);
            let missing: Vec<_> = values.iter().filter(is_missing).collect();
            backlog.extend(missing.into_iter().map(|value| (value.to_string(), 0, None)));
            for (value, count, oldest) in backlog {
                let age = oldest.map_or(0.0, |oldest| seconds(Timestamp(now.0 - oldest.0)));
                let value = [(label, value)];
                self.backlogs[n].count.get_or_create(&value).set(count);
                self.backlogs[n].oldest.get_or_create(&value).set(age);
            }
        }
        self.store_polled_timestamp.set(seconds(now));
    }

    /// Sets the imbalance of each currency; a currency that is not listed is balanced.
    pub fn set_imbalances(&self, imbalances: Vec<(String, i64)>, now: Timestamp) {
        self.ledger_imbalance_minor.clear();
        for (currency, minor) in imbalances {
            self.ledger_imbalance_minor.get_or_create(&[("currency", currency)]).set(minor);
        }
        self.ledger_checked_timestamp.set(seconds(now));
    }
}

/// Converts a time to the value of a gauge, in seconds.
pub fn seconds(time: Timestamp) -> f64 {
    time.0 as f64 / 1_000.0
}
