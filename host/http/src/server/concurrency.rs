//! Limits of a listener on concurrent requests: on all of them, and on those of one company.

use std::sync::Arc;

use super::responses::ResponseLimiter;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tollhouse_platform::{
    error::{Error, Result},
    limits::{owner::OwnerLimiter, rate::RateLimitExceeded},
    values::id::Owner,
};

/// The concurrency limiters of a listener. Cheap to clone.
#[derive(Clone)]
pub struct ConcurrencyLimiters {
    /// Limiter of authenticated requests.
    pub authenticated: ConcurrencyLimiter,
    /// Limiter of requests without authentication, separate from `authenticated`.
    pub unauthenticated: ConcurrencyLimiter,
    /// Limiter of lookups of keys that are new to this host, separate from `authenticated`.
    pub lookups: ConcurrencyLimiter,
    /// Limiter of bodies above the usual size, which are held in memory.
    pub uploads: ConcurrencyLimiter,
    /// Limiter of the bytes of large responses.
    pub responses: ResponseLimiter,
}

impl ConcurrencyLimiters {
    #[must_use]
    pub fn new(requests: usize) -> ConcurrencyLimiters {
        ConcurrencyLimiters {
            authenticated: ConcurrencyLimiter::new(requests),
            unauthenticated: ConcurrencyLimiter::new(requests.div_ceil(8)),
            lookups: ConcurrencyLimiter::new(requests.div_ceil(8)),
            uploads: ConcurrencyLimiter::new(requests.div_ceil(64)),
            responses: ResponseLimiter::new(requests),
        }
    }
}

/// A concurrency limiter. Cheap to clone.
#[derive(Clone)]
pub struct ConcurrencyLimiter {
    permits: Arc<Semaphore>,
    owners: OwnerLimiter<Owner>,
}

/// A permit of a request, released when dropped.
pub struct Permit {
    _permit: OwnedSemaphorePermit,
    owner_permit: Option<OwnedSemaphorePermit>,
}

impl ConcurrencyLimiter {
    /// Creates a limiter that gives one company at most half of its permits.
    #[must_use]
    pub fn new(most: usize) -> ConcurrencyLimiter {
        ConcurrencyLimiter {
            permits: Arc::new(Semaphore::new(most)),
            owners: OwnerLimiter::new(most.div_ceil(2)),
        }
    }

    /// Acquires a permit; 503 if none is free.
    pub fn try_acquire(&self) -> Result<Permit> {
        let full = |_| Error::Unavailable("the host is overloaded");
        let permit = self.permits.clone().try_acquire_owned().map_err(full)?;
        Ok(Permit { _permit: permit, owner_permit: None })
    }

    /// Acquires a permit, and assigns it to the owner if there is one.
    pub fn try_acquire_for(&self, owner: Option<&Owner>) -> Result<Permit> {
        let mut permit = self.try_acquire()?;
        if let Some(owner) = owner {
            self.assign(&mut permit, owner)?;
        }
        Ok(permit)
    }

    /// Assigns the permit to an owner; 429 if it has too many.
    pub fn assign(&self, permit: &mut Permit, owner: &Owner) -> Result<()> {
        let share = self.owners.try_acquire(owner);
        permit.owner_permit = Some(share.ok_or(RateLimitExceeded { seconds: 1 })?);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_company_gets_at_most_half_of_the_permits() {
        let limiter = ConcurrencyLimiter::new(4);
        let take = |company: &str| {
            let mut permit = limiter.try_acquire().unwrap();
            limiter.assign(&mut permit, &Owner::Company(company.into())).map(|()| permit)
        };
        let of_a = [take("a").unwrap(), take("a").unwrap()];
        assert!(matches!(take("a"), Err(Error::RateLimited(RateLimitExceeded { seconds: 1 }))));
        let of_b = [take("b").unwrap(), take("b").unwrap()];
        assert!(matches!(limiter.try_acquire(), Err(Error::Unavailable(_))));
        drop(of_a);
        let _of_a = [take("a").unwrap(), take("a").unwrap()];
        drop(of_b);
    }

    #[test]
    fn a_limit_of_one_admits_one_request() {
        let limiter = ConcurrencyLimiter::new(1);
        let mut permit = limiter.try_acquire().unwrap();
        limiter.assign(&mut permit, &Owner::Service).unwrap();
    }
}
