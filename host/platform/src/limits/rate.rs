//! Rate limits: a token bucket per key, kept in this host's memory.

use std::{hash::Hash, num::NonZeroU32, time::Duration};

use governor::{
    Quota, RateLimiter, clock, middleware::NoOpMiddleware, state::keyed::DashMapStateStore,
};

use crate::clock::Clock;

/// The rate limit is exceeded: the bucket is empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("too many requests, try again in {seconds} seconds")]
pub struct RateLimitExceeded {
    /// Seconds until the next token; at least 1.
    pub seconds: u64,
}

impl RateLimitExceeded {
    /// Rounds `wait` up to whole seconds.
    pub fn after(wait: Duration) -> RateLimitExceeded {
        let seconds = wait.as_millis().div_ceil(1_000).max(1);
        RateLimitExceeded { seconds: seconds.try_into().unwrap_or(u64::MAX) }
    }
}

/// Token buckets, one per key: `burst` tokens each, refilled by one token per `interval`.
pub struct Limiter<K: Clone + Eq + Hash>(Option<Buckets<K>>);

type Buckets<K> = RateLimiter<K, DashMapStateStore<K>, Clock, NoOpMiddleware<Duration>>;

impl<K: Clone + Eq + Hash> Limiter<K> {
    /// Creates a limiter. An `interval` of zero disables it.
    pub fn new(interval: Duration, burst: NonZeroU32, clock: Clock) -> Limiter<K> {
        let quota = Quota::with_period(interval).map(|quota| quota.allow_burst(burst));
        let buckets = |quota| RateLimiter::new(quota, DashMapStateStore::default(), clock);
        Limiter(quota.map(buckets))
    }

    /// Creates a limiter of `rate` tokens per second. A `rate` of 0 disables it.
    pub fn per_second(rate: u32, burst: NonZeroU32, clock: Clock) -> Limiter<K> {
        let interval = Duration::from_secs(1).checked_div(rate).unwrap_or_default();
        Limiter::new(interval, burst, clock)
    }

    /// Takes a token from the bucket of a key.
    pub fn check(&self, key: &K) -> Result<(), RateLimitExceeded> {
        let Some(buckets) = &self.0 else { return Ok(()) };
        buckets.check_key(key).map_err(|until| {
            RateLimitExceeded::after(until.wait_time_from(clock::Clock::now(buckets.clock())))
        })
    }

    /// Removes buckets that are full again.
    pub fn prune(&self) {
        if let Some(buckets) = &self.0 {
            buckets.retain_recent();
            buckets.shrink_to_fit();
        }
    }
}

/// The injected clock is the limiter's source of time.
impl clock::Clock for Clock {
    type Instant = Duration;

    fn now(&self) -> Duration {
        self.elapsed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Timestamp;

    fn count_allowed(limiter: &Limiter<String>, key: &str) -> usize {
        (0..100).take_while(|_| limiter.check(&key.to_owned()).is_ok()).count()
    }

    #[test]
    fn buckets_are_refilled_over_time_and_separate_per_key() {
        let clock = Clock::frozen_at(Timestamp(1_000_000));
        let limiter = Limiter::per_second(2, NonZeroU32::new(5).unwrap(), clock.clone());
        let advance = |ms| clock.advance_to(clock.now().plus_ms(ms));
        assert_eq!((count_allowed(&limiter, "a"), count_allowed(&limiter, "b")), (5, 5));
        assert_eq!(limiter.check(&"a".to_owned()), Err(RateLimitExceeded { seconds: 1 }));
        advance(1_000);
        assert_eq!(count_allowed(&limiter, "a"), 2);
        limiter.prune(); // keeps buckets in use
        assert_eq!(count_allowed(&limiter, "a"), 0);
        advance(60_000);
        limiter.prune();
        assert_eq!((count_allowed(&limiter, "a"), count_allowed(&limiter, "b")), (5, 5));
    }

    #[test]
    fn waits_are_rounded_up_to_whole_seconds() {
        let clock = Clock::frozen_at(Timestamp(0));
        let limiter = Limiter::new(Duration::from_secs(60), NonZeroU32::MIN, clock.clone());
        limiter.check(&1).unwrap();
        assert_eq!(limiter.check(&1), Err(RateLimitExceeded { seconds: 60 }));
        clock.advance_to(Timestamp(59_001));
        assert_eq!(limiter.check(&1), Err(RateLimitExceeded { seconds: 1 }));
        clock.advance_to(Timestamp(60_000));
        assert_eq!(limiter.check(&1), Ok(()));
    }

    #[test]
    fn a_rate_of_zero_limits_nothing() {
        let clock = Clock::frozen_at(Timestamp(0));
        let limiter = Limiter::per_second(0, NonZeroU32::MIN, clock);
        assert_eq!(count_allowed(&limiter, "a"), 100);
    }
}
