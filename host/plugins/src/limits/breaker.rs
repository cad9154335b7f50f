//! Circuit breakers: reject calls to what fails repeatedly, then admit one probe.

use std::{
    borrow::Borrow,
    collections::HashMap,
    hash::Hash,
    sync::{Mutex, MutexGuard, PoisonError},
};

use super::recent::Recent;
use tollhouse_platform::clock::Timestamp;

/// Open time at first and at most. Each failed probe doubles it.
const FIRST_REST_MS: i64 = 5_000;
const LONGEST_REST_MS: i64 = 60_000;
/// Time since the last outcome after which a breaker is discarded.
const FORGOTTEN_MS: i64 = 600_000;
/// Time after which an unfinished probe counts as abandoned.
const PROBE_MS: i64 = 60_000;

/// Circuit breakers by key. A key without recent failures has none.
pub struct Breakers<K>(Mutex<HashMap<K, Breaker>>);

impl<K> Default for Breakers<K> {
    fn default() -> Breakers<K> {
        Breakers(Mutex::default())
    }
}

impl<K: Eq + Hash> Breakers<K> {
    /// Admits a call, as the half-open probe if `Ok(true)`. `Err`: seconds until the next probe.
    pub fn admit<Q>(&self, what: &Q, now: Timestamp) -> Result<bool, u32>
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        match self.lock().get_mut(what) {
            Some(breaker) => breaker.admit(now),
            None => Ok(false),
        }
    }

    /// Records the outcome of an admitted call.
    pub fn saw(&self, what: K, worked: bool, now: Timestamp) {
        let mut breakers = self.lock();
        match breakers.get_mut(&what) {
            None if worked => {}
            None => {
                breakers.retain(|_, other| other.is_remembered(now));
                breakers.entry(what).or_default().saw(false, now);
            }
            Some(breaker) => {
                breaker.saw(worked, now);
                if breaker.is_idle() {
                    breakers.remove(&what);
                }
            }
        }
    }

    /// Releases an unused probe, so that the next call becomes the probe.
    pub fn was_not_tried<Q>(&self, what: &Q, now: Timestamp)
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        if let Some(open) = self.lock().get_mut(what).and_then(|breaker| breaker.open.as_mut())
            && open.probed
        {
            (open.until, open.probed) = (now, false);
        }
    }

    /// Returns the remaining open time in seconds; `None` if closed or if a probe is due.
    pub fn rests_for<Q>(&self, what: &Q, now: Timestamp) -> Option<u32>
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        let breakers = self.lock();
        let open = breakers.get(what)?.open.filter(|open| now < open.until)?;
        Some(seconds(open.until.0 - now.0))
    }

    /// Discards all breakers.
    pub fn forget(&self) {
        self.lock().clear();
    }

    /// Returns the number of open circuits.
    #[must_use]
    pub fn open(&self, now: Timestamp) -> usize {
        let breakers = self.lock();
        let open = breakers.values().filter(|breaker| breaker.open.is_some());
        open.filter(|breaker| breaker.is_remembered(now)).count()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<K, Breaker>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Default)]
struct Breaker {
    failures: Recent,
    open: Option<Open>,
}

#[derive(Clone, Copy)]
struct Open {
    until: Timestamp,
    rest_ms: i64,
    /// A probe is in flight.
    probed: bool,
}

impl Breaker {
    /// Admits one call as the probe when the open time is over.
    fn admit(&mut self, now: Timestamp) -> Result<bool, u32> {
        match &mut self.open {
            None => Ok(false),
            Some(open) if now >= open.until => {
                (open.until, open.probed) = (Timestamp(now.0 + PROBE_MS), true);
                Ok(true)
            }
            Some(open) => Err(seconds(open.until.0 - now.0)),
        }
    }

    fn saw(&mut self, worked: bool, now: Timestamp) {
        self.failures.note(!worked, now);
        match (&self.open, worked) {
            (Some(_), true) => *self = Breaker::default(),
            // A call that began before the circuit opened is not a probe.
            (Some(Open { probed: false, .. }), false) => {}
            (Some(open), false) => {
                let rest_ms = (open.rest_ms * 2).min(LONGEST_REST_MS);
                self.rest(rest_ms, now);
            }
            (None, false) if self.failures.are_most() => self.rest(FIRST_REST_MS, now),
            (None, _) => {}
        }
    }

    fn rest(&mut self, rest_ms: i64, now: Timestamp) {
        self.open = Some(Open { until: Timestamp(now.0 + rest_ms), rest_ms, probed: false });
    }

    fn is_remembered(&self, now: Timestamp) -> bool {
        now.0 - self.failures.latest().0 <= FORGOTTEN_MS
    }

    fn is_idle(&self) -> bool {
        self.open.is_none() && self.failures.are_none()
    }
}

fn seconds(ms: i64) -> u32 {
    u32::try_from((ms + 999) / 1_000).unwrap_or(1).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Records more failures than open a circuit.
    fn down(breakers: &Breakers<&str>, what: &'static str) {
        for _ in 0..20 {
            breakers.saw(what, false, Timestamp(0));
        }
    }

    #[test]
    fn sixteen_failures_open_the_circuit_of_their_key_only() {
        let breakers = Breakers::default();
        for n in 0..16 {
            assert_eq!(breakers.admit("a", Timestamp(n)), Ok(false), "{n}");
            breakers.saw("a", false, Timestamp(n));
        }
        assert_eq!(breakers.admit("a", Timestamp(16)), Err(5));
        assert_eq!(breakers.admit("b", Timestamp(16)), Ok(false));
        assert_eq!(breakers.open(Timestamp(16)), 1);
        assert!(
            breakers.rests_for("a", Timestamp(16)) == Some(5)
                && breakers.rests_for("a", Timestamp(5_015)).is_none()
        );
    }

    #[test]
    fn each_failed_probe_doubles_the_open_time() {
        let breakers = Breakers::default();
        down(&breakers, "a");
        let mut now = 0;
        for rest in [5_000, 10_000, 20_000, 40_000, 60_000, 60_000] {
            assert!(breakers.admit("a", Timestamp(now + rest - 1)).is_err(), "{rest}");
            now += rest;
            assert_eq!(breakers.admit("a", Timestamp(now)), Ok(true), "{rest}");
            assert!(breakers.admit("a", Timestamp(now)).is_err(), "one probe at a time");
            breakers.saw("a", false, Timestamp(now));
        }
        assert_eq!(breakers.admit("a", Timestamp(now + 60_000)), Ok(true));
        breakers.saw("a", true, Timestamp(now + 60_000));
        assert_eq!(breakers.admit("a", Timestamp(now + 60_000)), Ok(false));
        assert!(breakers.lock().is_empty(), "a success discards the breaker");
    }

    #[test]
    fn an_unfinished_probe_is_replaced_after_a_minute() {
        let breakers = Breakers::default();
        down(&breakers, "a");
        assert_eq!(breakers.admit("a", Timestamp(5_000)), Ok(true));
        assert_eq!(breakers.admit("a", Timestamp(64_999)), Err(1));
        assert_eq!(breakers.admit("a", Timestamp(65_000)), Ok(true));
    }

    #[test]
    fn an_unused_probe_passes_to_the_next_call() {
        let breakers = Breakers::default();
        down(&breakers, "a");
        breakers.was_not_tried("a", Timestamp(1_000));
        assert_eq!(breakers.admit("a", Timestamp(1_000)), Err(4), "no probe was in flight");
        assert_eq!(breakers.admit("a", Timestamp(5_000)), Ok(true));
        breakers.was_not_tried("a", Timestamp(5_001));
        assert_eq!(breakers.admit("a", Timestamp(5_001)), Ok(true));
        assert!(breakers.admit("a", Timestamp(5_002)).is_err(), "one probe at a time");
        breakers.was_not_tried("b", Timestamp(5_002));
    }

    #[test]
    fn a_breaker_without_outcomes_for_ten_minutes_is_discarded() {
        let breakers = Breakers::default();
        down(&breakers, "a");
        breakers.saw("b", false, Timestamp(600_000));
        assert_eq!(breakers.open(Timestamp(600_000)), 1);
        assert_eq!(breakers.open(Timestamp(600_001)), 0);
        breakers.saw("c", false, Timestamp(600_001));
        assert_eq!(breakers.lock().len(), 2, "a is discarded");
    }

    #[test]
    fn a_third_of_failures_opens_nothing_and_successes_clear_it() {
        let breakers = Breakers::default();
        for n in 0..200 {
            breakers.saw("a", n % 3 == 0, Timestamp(n));
        }
        assert_eq!(breakers.open(Timestamp(200)), 0);
        for n in 0..20 {
            breakers.saw("a", true, Timestamp(200 + n));
        }
        assert!(breakers.lock().is_empty());
    }
}
