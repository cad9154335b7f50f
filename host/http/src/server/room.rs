//! Concurrency limits of a listener: of all requests, and of those of one company.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::shares::{Share, Shares};
use tollhouse_platform::{
    error::{Error, Result},
    rate::Exceeded,
};

/// The concurrency limiters of a listener. Cheap to clone.
#[derive(Clone)]
pub struct Rooms {
    /// Limiter of authenticated requests.
    pub callers: Room,
    /// Limiter of requests without authentication, separate from `callers`.
    pub strangers: Room,
    /// Limiter of lookups of keys that are new to this host, separate from `callers`.
    pub lookups: Room,
    /// Limiter of bodies above the usual size, which are held in memory.
    pub uploads: Room,
}

impl Rooms {
    #[must_use]
    pub fn new(requests: usize) -> Rooms {
        Rooms {
            callers: Room::new(requests),
            strangers: Room::new(requests.div_ceil(8)),
            lookups: Room::new(requests.div_ceil(8)),
            uploads: Room::new(requests.div_ceil(64)),
        }
    }
}

/// A concurrency limiter. Cheap to clone.
#[derive(Clone)]
pub struct Room {
    free: Arc<Semaphore>,
    most_of_one: usize,
    companies: Shares<String>,
}

/// A permit of a request, released when dropped.
pub struct Place {
    _permit: OwnedSemaphorePermit,
    share: Option<Share<String>>,
}

impl Room {
    /// Creates a limiter that gives one company at most half of its permits.
    #[must_use]
    pub fn new(most: usize) -> Room {
        Room {
            free: Arc::new(Semaphore::new(most)),
            most_of_one: most.div_ceil(2),
            companies: Shares::default(),
        }
    }

    /// Acquires a permit; 503 if none is free.
    pub fn enter(&self) -> Result<Place> {
        let full = |_| Error::Unavailable("the host is overloaded");
        let permit = self.free.clone().try_acquire_owned().map_err(full)?;
        Ok(Place { _permit: permit, share: None })
    }

    /// Acquires a permit, and assigns it to the company if there is one.
    pub fn enter_as(&self, company_id: Option<&str>) -> Result<Place> {
        let mut place = self.enter()?;
        if let Some(company_id) = company_id {
            self.give(&mut place, company_id)?;
        }
        Ok(place)
    }

    /// Assigns the permit to a company; 429 if the company has too many.
    pub fn give(&self, place: &mut Place, company_id: &str) -> Result<()> {
        let share = self.companies.take(company_id.to_owned(), self.most_of_one);
        place.share = Some(share.ok_or(Exceeded { seconds: 1 })?);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_company_gets_at_most_half_of_the_permits() {
        let room = Room::new(4);
        let take = |company: &str| {
            let mut place = room.enter().unwrap();
            room.give(&mut place, company).map(|()| place)
        };
        let of_a = [take("a").unwrap(), take("a").unwrap()];
        assert!(matches!(take("a"), Err(Error::Throttled(Exceeded { seconds: 1 }))));
        let of_b = [take("b").unwrap(), take("b").unwrap()];
        assert!(matches!(room.enter(), Err(Error::Unavailable(_))));
        drop(of_a);
        let _of_a = [take("a").unwrap(), take("a").unwrap()];
        drop(of_b);
    }

    #[test]
    fn a_limit_of_one_admits_one_request() {
        let room = Room::new(1);
        let mut place = room.enter().unwrap();
        room.give(&mut place, "a").unwrap();
    }
}
