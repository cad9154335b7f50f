//! How many requests a listener takes on at once, and how many of them may be one company's.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::shares::{Share, Shares};
use crate::{
    error::{Error, Result},
    rate::Exceeded,
};

/// The rooms of a listener. Cheap to clone.
#[derive(Clone)]
pub struct Rooms {
    /// For requests whose caller is known.
    pub callers: Room,
    /// For requests of routes that need no key. They take no place of `callers`.
    pub strangers: Room,
    /// For requests with a key that this host has not accepted yet, while the key is looked up. They
    /// take no place of `callers` either.
    pub lookups: Room,
    /// For requests of callers with bodies above the usual size, which are held in memory.
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

/// Cheap to clone.
#[derive(Clone)]
pub struct Room {
    free: Arc<Semaphore>,
    most_of_one: usize,
    companies: Shares<String>,
}

/// A request's place, until it is dropped.
pub struct Place {
    _permit: OwnedSemaphorePermit,
    share: Option<Share<String>>,
}

impl Room {
    /// One company has half of it at most: however slowly it sends what it sends, others get in.
    #[must_use]
    pub fn new(most: usize) -> Room {
        Room {
            free: Arc::new(Semaphore::new(most)),
            most_of_one: most.div_ceil(2),
            companies: Shares::default(),
        }
    }

    /// 503 when there is none.
    pub fn enter(&self) -> Result<Place> {
        let full = |_| Error::Unavailable("the host has too much to do");
        let permit = self.free.clone().try_acquire_owned().map_err(full)?;
        Ok(Place { _permit: permit, share: None })
    }

    /// A place that is this company's, if it is one's.
    pub fn enter_as(&self, company_id: Option<&str>) -> Result<Place> {
        let mut place = self.enter()?;
        if let Some(company_id) = company_id {
            self.give(&mut place, company_id)?;
        }
        Ok(place)
    }

    /// The place is this company's from now on; 429 when it has too many.
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
    fn one_company_has_half_and_gives_back_what_it_had() {
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
    fn a_room_of_one_serves() {
        let room = Room::new(1);
        let mut place = room.enter().unwrap();
        room.give(&mut place, "a").unwrap();
    }
}
