//! The performance of provider accounts: availability and latency of their checkout sessions,
//! success rates by channel, and fees by amount.
//!
//! Each host keeps these statistics in memory, as exponentially weighted windows. It observes its
//! own requests for sessions, and reads outcomes and fees of the checkouts of all hosts from the
//! database. They are estimates: nothing that moves money depends on them.

mod window;

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Mutex, MutexGuard, PoisonError},
};

use serde::Deserialize;

use self::window::Window;
use super::AccountId;
use crate::state::prelude::*;

/// Half-life of availability and latency: a failing provider is avoided after a few requests, and
/// tried again some minutes later.
const SESSIONS: Window = Window::with_half_life(60);
/// Half-life of success rates.
const OUTCOMES: Window = Window::with_half_life(600);
/// Half-life of fees, which seldom change.
const FEES: Window = Window::with_half_life(86_400);

/// Prior value of an account without observations, and its weight in observations.
const PRIOR_AVAILABILITY: (f64, f64) = (0.99, 5.0);
const PRIOR_SUCCESS: (f64, f64) = (0.9, 10.0);
/// Weight, in observations, of an account's success rate in that of one of its channels.
const CHANNEL_PRIOR: f64 = 5.0;
/// Number of failures that count as an outage, if they outnumber the successes.
const OUTAGE: f64 = 3.0;

/// The statistics of this host.
#[derive(Default)]
pub struct Statistics(Mutex<State>);

#[derive(Default)]
struct State {
    accounts: HashMap<AccountId, Observed>,
    read_until: Option<Timestamp>,
}

/// The observations of an account.
struct Observed {
    /// Share of the requested sessions that were opened.
    opened: Window,
    /// Seconds until a session was open.
    latency: Window,
    /// Share of the ended checkouts that succeeded.
    succeeded: Window,
    by_channel: HashMap<String, Window>,
    /// Fees as a share of the amounts taken, by currency and magnitude of the amount.
    fees: HashMap<Currency, BTreeMap<u32, Window>>,
}

impl Default for Observed {
    fn default() -> Observed {
        Observed {
            opened: SESSIONS,
            latency: SESSIONS,
            succeeded: OUTCOMES,
            by_channel: HashMap::new(),
            fees: HashMap::new(),
        }
    }
}

/// The expected performance of an account.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "ProviderEstimate")]
pub struct Estimate {
    /// The share of requests for a checkout session that succeed, from 0 to 1.
    pub availability: f64,
    /// Mean duration of these requests in seconds; `null`: not known.
    pub latency_s: Option<f64>,
    /// The share of checkouts that succeed, of those that end, from 0 to 1.
    pub success_rate: f64,
    /// Provider fees in percent of an amount of this magnitude; `null`: not known.
    pub fees_percent: Option<f64>,
    /// `true` if most of the latest requests failed.
    pub is_down: bool,
}

/// The checkout that an estimate is for.
#[derive(Clone, Copy)]
pub struct Subject<'s> {
    pub amount: &'s Money,
    /// The only channel that the checkout offers.
    pub channel: Option<&'s str>,
}

/// A checkout that ended.
pub struct EndedCheckout {
    pub account_id: AccountId,
    pub channel: String,
    /// The amount taken and the fees, if it succeeded; unknown fees are absent.
    pub taken: Option<(Money, Option<Minor>)>,
    pub ended_at: Timestamp,
}

impl Statistics {
    /// Records a request for a checkout session.
    pub fn record_session(&self, account: &AccountId, ok: bool, took: Duration, now: Timestamp) {
        let mut state = self.lock();
        let observed = state.accounts.entry(account.clone()).or_default();
        observed.opened.add(f64::from(u8::from(ok)), 1.0, now);
        if ok {
            observed.latency.add(took.as_secs_f64(), 1.0, now);
        }
    }

    /// Records how a checkout ended.
    pub fn record_end(&self, ended: &EndedCheckout) {
        let EndedCheckout { account_id, channel, taken, ended_at } = ended;
        let mut state = self.lock();
        let observed = state.accounts.entry(account_id.clone()).or_default();
        let success = f64::from(u8::from(taken.is_some()));
        observed.succeeded.add(success, 1.0, *ended_at);
        if !channel.is_empty() {
            let by_channel = observed.by_channel.entry(channel.clone()).or_insert(OUTCOMES);
            by_channel.add(success, 1.0, *ended_at);
        }
        if let Some((amount, Some(fees))) = taken {
            let of_currency = observed.fees.entry(amount.currency.clone()).or_default();
            let window = of_currency.entry(magnitude(amount.minor)).or_insert(FEES);
            window.add(to_float(*fees), to_float(amount.minor), *ended_at);
        }
    }

    /// Returns the time until which ended checkouts have been recorded; `None`: none were.
    pub fn read_until(&self) -> Option<Timestamp> {
        self.lock().read_until
    }

    /// Records all checkouts that ended up to `until`, except those recorded earlier.
    pub fn record_ends(&self, ended: impl IntoIterator<Item = EndedCheckout>, until: Timestamp) {
        ended.into_iter().for_each(|ended| self.record_end(&ended));
        self.lock().read_until = Some(until);
    }

    /// Returns the expected performance of an account for a payment.
    pub fn estimate(&self, account: &AccountId, subject: Subject<'_>, now: Timestamp) -> Estimate {
        let unknown = Observed::default();
        let state = self.lock();
        state.accounts.get(account).unwrap_or(&unknown).estimate(subject, now)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Observed {
    fn estimate(&self, subject: Subject<'_>, now: Timestamp) -> Estimate {
        let (opened, requested) = self.opened.at(now);
        let failed = requested - opened;
        let success_rate = self.succeeded.rate(PRIOR_SUCCESS, now);
        let by_channel = subject.channel.and_then(|channel| self.by_channel.get(channel));
        Estimate {
            availability: self.opened.rate(PRIOR_AVAILABILITY, now),
            latency_s: self.latency.mean(now),
            success_rate: by_channel
                .map_or(success_rate, |window| window.rate((success_rate, CHANNEL_PRIOR), now)),
            fees_percent: self.fee_rate(subject.amount, now).map(|rate| rate * 100.0),
            is_down: failed >= OUTAGE && failed > opened,
        }
    }

    /// Returns the fees of similar amounts, as a share of the amount.
    fn fee_rate(&self, amount: &Money, now: Timestamp) -> Option<f64> {
        let wanted = magnitude(amount.minor);
        let of_currency = self.fees.get(&amount.currency)?;
        let nearest = of_currency.iter().min_by_key(|(magnitude, _)| magnitude.abs_diff(wanted));
        nearest.and_then(|(_, window)| window.mean(now))
    }
}

/// Amounts of the same magnitude differ by less than a factor of two.
fn magnitude(amount: Minor) -> u32 {
    amount.0.max(1).ilog2()
}

/// Amounts are below 10^15, which a double represents exactly.
#[expect(clippy::cast_precision_loss, reason = "amounts are below 2^53")]
fn to_float(amount: Minor) -> f64 {
    amount.0 as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp(1_700_000_000_000);

    fn ngn(minor: i64) -> Money {
        Money { minor: Minor(minor), currency: "NGN".into() }
    }

    fn ended(channel: &str, taken: Option<(i64, Option<i64>)>, at: Timestamp) -> EndedCheckout {
        let taken = taken.map(|(amount, fees)| (ngn(amount), fees.map(Minor)));
        EndedCheckout { account_id: "a".into(), channel: channel.to_owned(), taken, ended_at: at }
    }

    fn estimate(statistics: &Statistics, minor: i64, channel: &str, now: Timestamp) -> Estimate {
        let channel = Some(channel).filter(|channel| !channel.is_empty());
        statistics.estimate(&"a".into(), Subject { amount: &ngn(minor), channel }, now)
    }

    fn is_near(value: f64, expected: f64) -> bool {
        (value - expected).abs() < 0.005
    }

    #[test]
    fn an_account_is_down_after_three_failures_and_no_longer_after_some_minutes() {
        let statistics = Statistics::default();
        let record = |ok, now| {
            statistics.record_session(&"a".into(), ok, Duration::from_millis(250), now);
        };
        assert_eq!(estimate(&statistics, 1, "", NOW).latency_s, None);
        record(true, NOW);
        for expected in [false, false, true] {
            record(false, NOW);
            assert_eq!(estimate(&statistics, 1, "", NOW).is_down, expected);
        }
        let seen = estimate(&statistics, 1, "", NOW);
        assert!(is_near(seen.availability, 5.95 / 9.0) && seen.latency_s == Some(0.25));
        let later = estimate(&statistics, 1, "", NOW.plus_seconds(60));
        assert!(!later.is_down && later.availability > seen.availability);
        let much_later = estimate(&statistics, 1, "", NOW.plus_seconds(900));
        assert!(is_near(much_later.availability, 0.99));
    }

    #[test]
    fn success_rates_are_by_channel_and_fees_by_magnitude() {
        let statistics = Statistics::default();
        for _ in 0..90 {
            statistics.record_end(&ended("card", Some((100_000, Some(11_500))), NOW));
            statistics.record_end(&ended("ussd", None, NOW));
        }
        statistics.record_end(&ended("card", Some((10_000_000, Some(160_000))), NOW));
        statistics.record_end(&ended("card", Some((500, None)), NOW));
        let of = |minor, channel| estimate(&statistics, minor, channel, NOW);
        assert!(is_near(of(1, "").success_rate, (92.0 + 9.0) / 192.0));
        assert!(of(1, "card").success_rate > 0.97 && of(1, "ussd").success_rate < 0.03);
        assert!(is_near(of(1, "qr").success_rate, of(1, "").success_rate));
        for (minor, expected) in [(1, 11.5), (100_000, 11.5), (9_000_000, 1.6), (90_000_000, 1.6)] {
            assert!(is_near(of(minor, "").fees_percent.unwrap_or_default(), expected), "{minor}");
        }
        let dollars = Money { minor: Minor(100_000), currency: "USD".into() };
        let subject = Subject { amount: &dollars, channel: None };
        assert_eq!(statistics.estimate(&"a".into(), subject, NOW).fees_percent, None);
        assert_eq!(statistics.estimate(&"b".into(), subject, NOW).success_rate, PRIOR_SUCCESS.0);
    }

    #[test]
    fn an_observation_that_arrives_late_counts_as_much_as_one_that_arrived_in_time() {
        let [in_order, reversed] = [[0, 600], [600, 0]].map(|times| {
            let statistics = Statistics::default();
            for at in times {
                let taken = (at == 0).then_some((100, None));
                statistics.record_end(&ended("card", taken, NOW.plus_seconds(at)));
            }
            estimate(&statistics, 1, "card", NOW.plus_seconds(900)).success_rate
        });
        assert!((in_order - reversed).abs() < 1e-9);
    }
}
