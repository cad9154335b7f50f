//! How many requests a listener takes on at once, and how many of them may be one company's.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::{
    error::{Error, Result},
    rate::Exceeded,
};

/// Cheap to clone.
#[derive(Clone)]
pub struct Room {
    free: Arc<Semaphore>,
    most_of_one: usize,
    companies: Arc<Mutex<HashMap<String, usize>>>,
}

/// A request's place, until it is dropped.
pub struct Place {
    _permit: OwnedSemaphorePermit,
    share: Option<Share>,
}

/// One of the places that a company has.
struct Share {
    room: Room,
    company_id: String,
}

impl Room {
    /// One company has half of it at most: however slowly it sends what it sends, others get in.
    #[must_use]
    pub fn new(most: usize) -> Room {
        Room {
            free: Arc::new(Semaphore::new(most)),
            most_of_one: most.div_ceil(2),
            companies: Arc::default(),
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
        let mut companies = self.companies();
        let count = companies.entry(company_id.to_owned()).or_default();
        if *count == self.most_of_one {
            return Err(Exceeded { seconds: 1 }.into());
        }
        *count += 1;
        place.share = Some(Share { room: self.clone(), company_id: company_id.to_owned() });
        Ok(())
    }

    fn companies(&self) -> MutexGuard<'_, HashMap<String, usize>> {
        self.companies.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let mut companies = self.room.companies();
        match companies.get_mut(&self.company_id) {
            Some(count) if *count > 1 => *count -= 1,
            _ => drop(companies.remove(&self.company_id)),
        }
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
        drop((of_b, _of_a));
        assert!(room.companies().is_empty());
    }

    #[test]
    fn a_room_of_one_serves() {
        let room = Room::new(1);
        let mut place = room.enter().unwrap();
        room.give(&mut place, "a").unwrap();
    }
}
