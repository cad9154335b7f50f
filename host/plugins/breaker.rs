//! Circuit breakers: an upstream that is down is not asked again and again.
//!
//! Each account's way to each upstream has its own, so that one company's wrong address is nobody else's trouble.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use super::recent::Recent;
use crate::clock::Timestamp;

/// How long an upstream is left alone: at first, and at most. It doubles with each probe that finds it down.
const FIRST_REST_MS: i64 = 5_000;
const LONGEST_REST_MS: i64 = 60_000;
/// A probe that has not ended after this long has been given up.
const PROBE_MS: i64 = 60_000;

/// An account's way to an origin.
pub type Way = (String, String);

/// The breakers of a host. Ways that answer have none.
#[derive(Default)]
pub struct Breakers(Mutex<HashMap<Way, Breaker>>);

impl Breakers {
    /// Whether a request may be sent; else after how many seconds it is worth trying.
    pub fn admit(&self, way: &Way, now: Timestamp) -> Result<(), u32> {
        match self.lock().get_mut(way) {
            Some(breaker) => breaker.admit(now),
            None => Ok(()),
        }
    }

    /// What became of a request that was admitted.
    pub fn saw(&self, way: Way, answered: bool, now: Timestamp) {
        let mut breakers = self.lock();
        match breakers.get_mut(&way) {
            None if answered => {}
            None => breakers.entry(way).or_default().saw(false, now),
            Some(breaker) => {
                breaker.saw(answered, now);
                if breaker.is_idle() {
                    breakers.remove(&way);
                }
            }
        }
    }

    /// How many ways are closed to requests.
    #[must_use]
    pub fn open(&self) -> usize {
        self.lock().values().filter(|breaker| breaker.open.is_some()).count()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Way, Breaker>> {
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
    /// When the rest is over, one request finds out; others wait for what it finds.
    fn admit(&mut self, now: Timestamp) -> Result<(), u32> {
        match &mut self.open {
            None => Ok(()),
            Some(open) if now >= open.until => {
                (open.until, open.probed) = (Timestamp(now.0 + PROBE_MS), true);
                Ok(())
            }
            Some(open) => Err(seconds(open.until.0 - now.0)),
        }
    }

    fn saw(&mut self, answered: bool, now: Timestamp) {
        self.failures.note(!answered, now);
        match (&self.open, answered) {
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

    fn way(account: &str) -> Way {
        (account.to_owned(), "https://api.example.com".to_owned())
    }

    /// Requests of one account that got no answer, a few of them after it was left alone.
    fn down(breakers: &Breakers, account: &str) {
        for _ in 0..20 {
            breakers.saw(way(account), false, Timestamp(0));
        }
    }

    #[test]
    fn an_upstream_that_is_down_is_left_alone_by_one_account() {
        let breakers = Breakers::default();
        for n in 0..16 {
            assert_eq!(breakers.admit(&way("a"), Timestamp(n)), Ok(()), "{n}");
            breakers.saw(way("a"), false, Timestamp(n));
        }
        assert_eq!(breakers.admit(&way("a"), Timestamp(16)), Err(5));
        assert_eq!(breakers.admit(&way("b"), Timestamp(16)), Ok(()));
        assert_eq!(breakers.open(), 1);
    }

    #[test]
    fn one_probe_finds_out_and_the_rest_doubles() {
        let breakers = Breakers::default();
        down(&breakers, "a");
        let mut now = 0;
        for rest in [5_000, 10_000, 20_000, 40_000, 60_000, 60_000] {
            assert!(breakers.admit(&way("a"), Timestamp(now + rest - 1)).is_err(), "{rest}");
            now += rest;
            assert_eq!(breakers.admit(&way("a"), Timestamp(now)), Ok(()), "{rest}");
            assert!(breakers.admit(&way("a"), Timestamp(now)).is_err(), "one at a time");
            breakers.saw(way("a"), false, Timestamp(now));
        }
        assert_eq!(breakers.admit(&way("a"), Timestamp(now + 60_000)), Ok(()));
        breakers.saw(way("a"), true, Timestamp(now + 60_000));
        assert_eq!(breakers.admit(&way("a"), Timestamp(now + 60_000)), Ok(()));
        assert!(breakers.lock().is_empty(), "who answers is forgotten");
    }

    #[test]
    fn a_probe_that_never_ends_is_followed_by_another() {
        let breakers = Breakers::default();
        down(&breakers, "a");
        assert_eq!(breakers.admit(&way("a"), Timestamp(5_000)), Ok(()));
        assert_eq!(breakers.admit(&way("a"), Timestamp(64_999)), Err(1));
        assert_eq!(breakers.admit(&way("a"), Timestamp(65_000)), Ok(()));
    }

    #[test]
    fn a_bad_moment_opens_nothing_and_is_forgotten() {
        let breakers = Breakers::default();
        for n in 0..200 {
            breakers.saw(way("a"), n % 3 == 0, Timestamp(n));
        }
        assert_eq!(breakers.open(), 0);
        for n in 0..20 {
            breakers.saw(way("a"), true, Timestamp(200 + n));
        }
        assert!(breakers.lock().is_empty());
    }
}
