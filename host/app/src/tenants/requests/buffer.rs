//! The buffer of completed requests: bounded, and for each company.

use std::{
    collections::HashMap,
    mem,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tollhouse_http::CompletedRequest;
use tollhouse_platform::{telemetry::metric::Counter, values::id::CompanyId};

/// Maximum number of buffered requests; further ones are dropped.
const MAX_BUFFERED: usize = 4_096;
/// Maximum number of them that belong to one company.
const MAX_OF_COMPANY: usize = MAX_BUFFERED / 4;

/// Completed requests that are not saved yet. Cheap to clone; all clones share them.
#[derive(Clone)]
pub struct RequestBuffer {
    buffered: Arc<Mutex<Buffered>>,
    dropped: Counter,
}

#[derive(Default)]
struct Buffered {
    requests: Vec<CompletedRequest>,
    of_company: HashMap<CompanyId, usize>,
    /// Number of requests that were taken before.
    taken: usize,
}

impl RequestBuffer {
    pub fn new(dropped: Counter) -> RequestBuffer {
        RequestBuffer { buffered: Arc::default(), dropped }
    }

    /// Adds a request, or drops it if the buffer or the share of its company is full.
    pub fn push(&self, request: CompletedRequest) {
        let mut buffered = self.lock();
        let Buffered { requests, of_company, .. } = &mut *buffered;
        let count = of_company.get(&request.company_id).copied().unwrap_or(0);
        if requests.len() == MAX_BUFFERED || count == MAX_OF_COMPANY {
            self.dropped.inc();
            return;
        }
        of_company.insert(request.company_id.clone(), count + 1);
        requests.push(request);
    }

    /// Removes all requests. Returns them in their order, and the number of those before them.
    pub fn take(&self) -> (usize, Vec<CompletedRequest>) {
        let mut buffered = self.lock();
        let (first, requests) = (buffered.taken, mem::take(&mut buffered.requests));
        buffered.of_company.clear();
        buffered.taken = first.wrapping_add(requests.len());
        (first, requests)
    }

    /// Counts requests that could not be saved.
    pub fn count_dropped(&self, count: usize) {
        self.dropped.inc_by(count as u64);
    }

    fn lock(&self) -> MutexGuard<'_, Buffered> {
        self.buffered.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use tollhouse_http::RequestOrigin;
    use tollhouse_platform::clock::Timestamp;

    fn request(company: &str) -> CompletedRequest {
        CompletedRequest {
            company_id: company.into(),
            key_id: "key".to_owned(),
            origin: RequestOrigin::default(),
            began_at: Timestamp(0),
            method: "GET",
            route: "/api/v1/payment/list".into(),
            status: 200,
            duration: Duration::ZERO,
            error: None,
        }
    }

    fn buffer() -> (RequestBuffer, impl Fn() -> u64) {
        let dropped = Counter::default();
        let buffer = RequestBuffer::new(dropped.clone());
        (buffer, move || dropped.get())
    }

    #[test]
    fn a_flood_of_one_company_leaves_room_for_others() {
        let (buffer, dropped) = buffer();
        for _ in 0..3 * MAX_BUFFERED {
            buffer.push(request("noisy"));
        }
        assert_eq!(dropped(), (3 * MAX_BUFFERED - MAX_OF_COMPANY) as u64);
        buffer.push(request("quiet"));
        let (_, requests) = buffer.take();
        assert_eq!(requests.len(), MAX_OF_COMPANY + 1);
        assert_eq!(requests.last().expect("a request").company_id, "quiet".into());
    }

    #[test]
    fn the_buffer_is_bounded_and_empty_after_it_was_taken() {
        let (buffer, dropped) = buffer();
        let fill = || {
            for company in ["a", "b", "c", "d"] {
                (0..MAX_OF_COMPANY).for_each(|_| buffer.push(request(company)));
            }
        };
        fill();
        assert_eq!(dropped(), 0);
        buffer.push(request("e"));
        assert_eq!(dropped(), 1, "a company without requests, but the buffer is full");
        let (first, requests) = buffer.take();
        assert_eq!((first, requests.len()), (0, MAX_BUFFERED));
        let (first, requests) = buffer.take();
        assert_eq!((first, requests.len()), (MAX_BUFFERED, 0));
        fill();
        assert_eq!((dropped(), buffer.take().1.len()), (1, MAX_BUFFERED));
    }

    #[test]
    fn requests_that_could_not_be_saved_are_counted() {
        let (buffer, dropped) = buffer();
        buffer.count_dropped(3);
        assert_eq!(dropped(), 3);
    }
}
