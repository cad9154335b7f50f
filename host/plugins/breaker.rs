//! Circuit breakers: what fails again and again is left alone for a while, and then tried once.

use std::{
    borrow::Borrow,
    collections::HashMap,
    hash::Hash,
    sync::{Mutex, MutexGuard, PoisonError},
};

use super::recent::Recent;
use crate::clock::Timestamp;

/// How long something is left alone: at first, and at most. It doubles with each probe that fails.
const FIRST_REST_MS: i64 = 5_000;
const LONGEST_REST_MS: i64 = 60_000;
/// What nobody has tried for so long is forgotten.
const FORGOTTEN_MS: i64 = 600_000;
/// A probe that has not ended after this long has been given up.
const PROBE_MS: i64 = 60_000;

/// A breaker for each of many. Those that work have none.
pub struct Breakers<K>(Mutex<HashMap<K, Breaker>>);

impl<K> Default for Breakers<K> {
    fn default() -> Breakers<K> {
        Breakers(Mutex::default())
    }
}

impl<K: Eq + Hash> Breakers<K> {
    /// Whether it may be tried, and whether that finds out how it fares by now; else after how many seconds it is worth it.
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

    /// What became of a try that was admitted.
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

    /// Who was to find out has not tried after all: another does.
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

    /// For how many seconds it is left alone; `None`: somebody may find out, or nothing is known against it.
    pub fn rests_for<Q>(&self, what: &Q, now: Timestamp) -> Option<u32>
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        let breakers = self.lock();
        let open = breakers.get(what)?.open.filter(|open| now < open.until)?;
        Some(seconds(open.until.0 - now.0))
    }

    /// All is as if nothing had failed.
    pub fn forget(&self) {
        self.lock().clear();
    }

    /// How many are left alone, and not forgotten.
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
    /// Somebody is finding out.
    probed: bool,
}

impl Breaker {
    /// When the rest is over, one finds out; others wait for what it finds.
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
            // What was under way when it opened says nothing new.
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

    /// It fails again and again, a few times when it is left alone already.
    fn down(breakers: &Breakers<&str>, what: &'static str) {
        for _ in 0..20 {
            breakers.saw(what, false, Timestamp(0));
        }
    }

    #[test]
    fn what_fails_again_and_again_is_left_alone_and_nothing_else() {
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
    fn one_probe_finds_out_and_the_rest_doubles() {
        let breakers = Breakers::default();
        down(&breakers, "a");
        let mut now = 0;
        for rest in [5_000, 10_000, 20_000, 40_000, 60_000, 60_000] {
            assert!(breakers.admit("a", Timestamp(now + rest - 1)).is_err(), "{rest}");
            now += rest;
            assert_eq!(breakers.admit("a", Timestamp(now)), Ok(true), "{rest}");
            assert!(breakers.admit("a", Timestamp(now)).is_err(), "one at a time");
            breakers.saw("a", false, Timestamp(now));
        }
        assert_eq!(breakers.admit("a", Timestamp(now + 60_000)), Ok(true));
        breakers.saw("a", true, Timestamp(now + 60_000));
        assert_eq!(breakers.admit("a", Timestamp(now + 60_000)), Ok(false));
        assert!(breakers.lock().is_empty(), "who answers is forgotten");
    }

    #[test]
    fn a_probe_that_never_ends_is_followed_by_another() {
        let breakers = Breakers::default();
        down(&breakers, "a");
        assert_eq!(breakers.admit("a", Timestamp(5_000)), Ok(true));
        assert_eq!(breakers.admit("a", Timestamp(64_999)), Err(1));
        assert_eq!(breakers.admit("a", Timestamp(65_000)), Ok(true));
    }

    #[test]
    fn a_probe_that_was_not_made_is_anothers() {
        let breakers = Breakers::default();
        down(&breakers, "a");
        breakers.was_not_tried("a", Timestamp(1_000));
        assert_eq!(breakers.admit("a", Timestamp(1_000)), Err(4), "it was not admitted");
        assert_eq!(breakers.admit("a", Timestamp(5_000)), Ok(true));
        breakers.was_not_tried("a", Timestamp(5_001));
        assert_eq!(breakers.admit("a", Timestamp(5_001)), Ok(true));
        assert!(breakers.admit("a", Timestamp(5_002)).is_err(), "one at a time");
        breakers.was_not_tried("b", Timestamp(5_002));
    }

    #[test]
    fn what_nobody_tries_any_more_is_forgotten() {
        let breakers = Breakers::default();
        down(&breakers, "a");
        breakers.saw("b", false, Timestamp(600_000));
        assert_eq!(breakers.open(Timestamp(600_000)), 1);
        assert_eq!(breakers.open(Timestamp(600_001)), 0);
        breakers.saw("c", false, Timestamp(600_001));
        assert_eq!(breakers.lock().len(), 2, "not even kept");
    }

    #[test]
    fn a_bad_moment_opens_nothing_and_is_forgotten() {
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
