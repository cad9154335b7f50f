//! Circuit breakers: reject calls to what fails repeatedly, then admit one probe.

use std::sync::MutexGuard;

use crate::prelude::*;

/// Open time at first and at most. Each failed probe doubles it.
const MIN_OPEN_MS: i64 = 5_000;
const MAX_OPEN_MS: i64 = 60_000;
/// Time since the last outcome after which a breaker is discarded.
const DISCARD_AFTER_MS: i64 = 600_000;
/// Time after which an unfinished probe counts as abandoned.
const PROBE_TIMEOUT_MS: i64 = 60_000;

/// Window length and failure threshold, in calls.
const WINDOW_CALLS: u32 = 20;
const FAILURE_THRESHOLD: u32 = 16;
/// Time between two calls after which the window is cleared.
const GAP_MS: i64 = 60_000;

/// Circuit breakers by key. A key without recent failures has none.
#[derive(Default)]
pub struct CircuitBreakers(Mutex<HashMap<String, CircuitBreaker>>);

impl CircuitBreakers {
    /// Admits a call, as the half-open probe if `Ok(true)`. `Err`: seconds until the next probe.
    pub fn admit(&self, key: &str, now: Timestamp) -> Result<bool, u32> {
        self.lock().get_mut(key).map_or(Ok(false), |breaker| breaker.admit(now))
    }

    /// Records the outcome of an admitted call.
    pub fn record(&self, key: &str, succeeded: bool, now: Timestamp) {
        let mut breakers = self.lock();
        match breakers.get_mut(key) {
            None if succeeded => {}
            None => {
                breakers.retain(|_, other| other.is_recent(now));
                breakers.entry(key.to_owned()).or_default().record(false, now);
            }
            Some(breaker) => {
                breaker.record(succeeded, now);
                if breaker.state.is_none() && breaker.failures.has_no_failures() {
                    breakers.remove(key);
                }
            }
        }
    }

    /// Releases an unused probe, so that the next call becomes the probe.
    pub fn abandon_probe(&self, key: &str, now: Timestamp) {
        if let Some(open) = self.lock().get_mut(key).and_then(|breaker| breaker.state.as_mut())
            && open.probe_in_flight
        {
            (open.until, open.probe_in_flight) = (now, false);
        }
    }

    /// Returns the remaining open time in seconds; `None` if closed or if a probe is due.
    pub fn open_for(&self, key: &str, now: Timestamp) -> Option<u32> {
        let breakers = self.lock();
        let open = breakers.get(key)?.state.filter(|open| now < open.until)?;
        Some(seconds(open.until.0 - now.0))
    }

    /// Returns the open circuits whose keys begin with a prefix: the rest of the key, and the
    /// seconds until the next probe, 0 if it is due or in flight.
    pub fn list_open(&self, prefix: &str, now: Timestamp) -> Vec<(String, u32)> {
        let breakers = self.lock();
        let recent = breakers.iter().filter(|(_, breaker)| breaker.is_recent(now));
        let open = recent.filter_map(|(key, breaker)| {
            let (open, rest) = (breaker.state?, key.strip_prefix(prefix)?);
            let is_waiting = !open.probe_in_flight && now < open.until;
            let left = if is_waiting { seconds(open.until.0 - now.0) } else { 0 };
            Some((rest.to_owned(), left))
        });
        let mut open: Vec<_> = open.collect();
        open.sort();
        open
    }

    pub fn clear(&self) {
        self.lock().clear();
    }

    pub fn open_count(&self, now: Timestamp) -> usize {
        let breakers = self.lock();
        let open = breakers.values().filter(|breaker| breaker.state.is_some());
        open.filter(|breaker| breaker.is_recent(now)).count()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, CircuitBreaker>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Default)]
struct CircuitBreaker {
    failures: OutcomeWindow,
    state: Option<OpenState>,
}

#[derive(Clone, Copy)]
struct OpenState {
    until: Timestamp,
    open_ms: i64,
    /// A probe is in flight.
    probe_in_flight: bool,
}

impl CircuitBreaker {
    /// Admits one call as the probe when the open time is over.
    fn admit(&mut self, now: Timestamp) -> Result<bool, u32> {
        match &mut self.state {
            None => Ok(false),
            Some(open) if now >= open.until => {
                (open.until, open.probe_in_flight) = (Timestamp(now.0 + PROBE_TIMEOUT_MS), true);
                Ok(true)
            }
            Some(open) => Err(seconds(open.until.0 - now.0)),
        }
    }

    fn record(&mut self, succeeded: bool, now: Timestamp) {
        self.failures.record(!succeeded, now);
        match (&self.state, succeeded) {
            (Some(_), true) => *self = CircuitBreaker::default(),
            // A call that began before the circuit opened is not a probe.
            (Some(OpenState { probe_in_flight: false, .. }), false) => {}
            (Some(open), false) => self.trip((open.open_ms * 2).min(MAX_OPEN_MS), now),
            (None, false) if self.failures.reaches_threshold() => self.trip(MIN_OPEN_MS, now),
            (None, _) => {}
        }
    }

    fn trip(&mut self, open_ms: i64, now: Timestamp) {
        self.state =
            Some(OpenState { until: Timestamp(now.0 + open_ms), open_ms, probe_in_flight: false });
    }

    fn is_recent(&self, now: Timestamp) -> bool {
        now.0 - self.failures.latest.0 <= DISCARD_AFTER_MS
    }
}

/// A window of the latest outcomes, which distinguishes an outage from a few failures.
#[derive(Clone, Copy, Debug, Default)]
struct OutcomeWindow {
    /// One bit per outcome, 1 for a failure. The lowest bit is the latest.
    failures: u32,
    latest: Timestamp,
}

impl OutcomeWindow {
    fn record(&mut self, failed: bool, now: Timestamp) {
        if now.0 - self.latest.0 > GAP_MS {
            self.failures = 0;
        }
        self.latest = now;
        self.failures = (self.failures << 1 | u32::from(failed)) & ((1 << WINDOW_CALLS) - 1);
    }

    fn reaches_threshold(&self) -> bool {
        self.failures.count_ones() >= FAILURE_THRESHOLD
    }

    fn has_no_failures(&self) -> bool {
        self.failures == 0
    }
}

fn seconds(ms: i64) -> u32 {
    u32::try_from((ms + 999) / 1_000).unwrap_or(1).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns breakers with more failures of `a` than open its circuit.
    fn down() -> CircuitBreakers {
        let breakers = CircuitBreakers::default();
        (0..20).for_each(|_| breakers.record("a", false, Timestamp(0)));
        breakers
    }

    #[test]
    fn sixteen_failures_open_the_circuit_of_their_key_only() {
        let breakers = CircuitBreakers::default();
        for n in 0..16 {
            assert_eq!(breakers.admit("a", Timestamp(n)), Ok(false), "{n}");
            breakers.record("a", false, Timestamp(n));
        }
        assert_eq!(breakers.admit("a", Timestamp(16)), Err(5));
        assert_eq!(breakers.admit("b", Timestamp(16)), Ok(false));
        assert_eq!(breakers.open_count(Timestamp(16)), 1);
        assert!(
            breakers.open_for("a", Timestamp(16)) == Some(5)
                && breakers.open_for("a", Timestamp(5_015)).is_none()
        );
    }

    #[test]
    fn each_failed_probe_doubles_the_open_time() {
        let breakers = down();
        let mut now = 0;
        for rest in [5_000, 10_000, 20_000, 40_000, 60_000, 60_000] {
            assert!(breakers.admit("a", Timestamp(now + rest - 1)).is_err(), "{rest}");
            now += rest;
            assert_eq!(breakers.admit("a", Timestamp(now)), Ok(true), "{rest}");
            assert!(breakers.admit("a", Timestamp(now)).is_err(), "one probe at a time");
            breakers.record("a", false, Timestamp(now));
        }
        assert_eq!(breakers.admit("a", Timestamp(now + 60_000)), Ok(true));
        breakers.record("a", true, Timestamp(now + 60_000));
        assert_eq!(breakers.admit("a", Timestamp(now + 60_000)), Ok(false));
        assert!(breakers.lock().is_empty(), "a success discards the breaker");
    }

    #[test]
    fn an_unfinished_probe_is_replaced_after_a_minute() {
        let breakers = down();
        assert_eq!(breakers.admit("a", Timestamp(5_000)), Ok(true));
        assert_eq!(breakers.admit("a", Timestamp(64_999)), Err(1));
        assert_eq!(breakers.admit("a", Timestamp(65_000)), Ok(true));
    }

    #[test]
    fn an_unused_probe_passes_to_the_next_call() {
        let breakers = down();
        breakers.abandon_probe("a", Timestamp(1_000));
        assert_eq!(breakers.admit("a", Timestamp(1_000)), Err(4), "no probe was in flight");
        assert_eq!(breakers.admit("a", Timestamp(5_000)), Ok(true));
        breakers.abandon_probe("a", Timestamp(5_001));
        assert_eq!(breakers.admit("a", Timestamp(5_001)), Ok(true));
        assert!(breakers.admit("a", Timestamp(5_002)).is_err(), "one probe at a time");
        breakers.abandon_probe("b", Timestamp(5_002));
    }

    #[test]
    fn a_breaker_without_outcomes_for_ten_minutes_is_discarded() {
        let breakers = down();
        breakers.record("b", false, Timestamp(600_000));
        assert_eq!(breakers.open_count(Timestamp(600_000)), 1);
        assert_eq!(breakers.open_count(Timestamp(600_001)), 0);
        breakers.record("c", false, Timestamp(600_001));
        assert_eq!(breakers.lock().len(), 2, "a is discarded");
    }

    #[test]
    fn a_third_of_failures_opens_nothing_and_successes_clear_it() {
        let breakers = CircuitBreakers::default();
        for n in 0..200 {
            breakers.record("a", n % 3 == 0, Timestamp(n));
        }
        assert_eq!(breakers.open_count(Timestamp(200)), 0);
        for n in 0..20 {
            breakers.record("a", true, Timestamp(200 + n));
        }
        assert!(breakers.lock().is_empty());
    }

    #[test]
    fn open_circuits_are_listed_by_the_prefix_of_their_keys() {
        let breakers = down();
        (0..20).for_each(|_| breakers.record("ab", false, Timestamp(0)));
        breakers.record("abc", false, Timestamp(0));
        let open = |prefix, now| breakers.list_open(prefix, Timestamp(now));
        assert_eq!(open("a", 0), [(String::new(), 5), ("b".to_owned(), 5)]);
        assert_eq!(open("ab", 4_000), [(String::new(), 1)]);
        assert_eq!(open("ab", 5_000), [(String::new(), 0)], "a probe is due");
        assert_eq!(open("b", 0), []);
        assert_eq!(open("a", 600_001), [], "they are discarded");
    }

    fn of(outcomes: &[bool], every_ms: i64) -> OutcomeWindow {
        let mut recent = OutcomeWindow::default();
        for (n, is_bad) in (1..).zip(outcomes) {
            recent.record(*is_bad, Timestamp(n * every_ms));
        }
        recent
    }

    #[test]
    fn sixteen_failures_of_twenty_reach_the_threshold() {
        assert!(!of(&[true; 15], 1).reaches_threshold());
        assert!(of(&[true; 16], 1).reaches_threshold());
        let mixed: Vec<bool> = (0..40).map(|n| n % 5 != 0).collect();
        assert!(of(&mixed, 1).reaches_threshold(), "four of five");
        let mixed: Vec<bool> = (0..40).map(|n| n % 4 != 0).collect();
        assert!(!of(&mixed, 1).reaches_threshold(), "three of four");
    }

    #[test]
    fn failures_more_than_a_minute_apart_do_not_add_up() {
        assert!(of(&[true; 40], GAP_MS).reaches_threshold());
        assert!(!of(&[true; 40], GAP_MS + 1).reaches_threshold());
        assert!(of(&[false; 20], 1).has_no_failures());
    }
}
