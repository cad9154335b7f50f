//! Buffers of log entries that a background task saves, so that logging neither delays nor fails
//! the work that is logged. They are bounded, and have a share for each company. A crash loses what
//! is buffered.

use std::{
    collections::HashMap,
    mem,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::sync::Notify;

use crate::{
    clock::Timestamp,
    random::{Random, id_lower_bound},
    telemetry::metric::Counter,
    values::id::CompanyId,
};

/// Maximum number of buffered entries; further ones are dropped.
const MAX_BUFFERED: usize = 4_096;
/// Maximum number of them that belong to one company.
const MAX_OF_COMPANY: usize = MAX_BUFFERED / 4;
/// Numbers of entries, of one company and of all, at which the buffer is saved early.
const EARLY_FLUSH: usize = MAX_OF_COMPANY / 2;
const EARLY_FLUSH_OF_ALL: usize = MAX_BUFFERED / 2;
/// Time until entries are saved.
const FLUSH_INTERVAL: Duration = Duration::from_secs(1);

/// An entry of a log.
pub trait LogEntry {
    /// The company whose share of the buffer the entry uses.
    fn company(&self) -> &CompanyId;
}

/// Entries that are not saved yet. Cheap to clone; all clones share them.
pub struct LogBuffer<T> {
    shared: Arc<Shared<T>>,
}

struct Shared<T> {
    buffered: Mutex<Buffered<T>>,
    wake: Notify,
    dropped: Counter,
}

struct Buffered<T> {
    entries: Vec<T>,
    of_company: HashMap<CompanyId, usize>,
    /// Number of entries that were taken before.
    taken: usize,
}

impl<T> Clone for LogBuffer<T> {
    fn clone(&self) -> LogBuffer<T> {
        LogBuffer { shared: self.shared.clone() }
    }
}

impl<T: LogEntry> LogBuffer<T> {
    /// `dropped` counts entries that are not saved.
    pub fn new(dropped: &Counter) -> LogBuffer<T> {
        let buffered = Buffered { entries: Vec::new(), of_company: HashMap::new(), taken: 0 };
        let (buffered, wake) = (Mutex::new(buffered), Notify::new());
        LogBuffer { shared: Arc::new(Shared { buffered, wake, dropped: dropped.clone() }) }
    }

    /// Adds an entry, or drops it if the buffer or the share of its company is full.
    pub fn push(&self, entry: T) {
        let mut buffered = self.lock();
        let Buffered { entries, of_company, .. } = &mut *buffered;
        let count = of_company.get(entry.company()).copied().unwrap_or(0);
        if entries.len() == MAX_BUFFERED || count == MAX_OF_COMPANY {
            self.shared.dropped.inc();
            return;
        }
        of_company.insert(entry.company().clone(), count + 1);
        entries.push(entry);
        if count + 1 == EARLY_FLUSH || entries.len() == EARLY_FLUSH_OF_ALL {
            self.shared.wake.notify_one();
        }
    }

    /// Waits for a second, or until half of the buffer or of a company's share is used.
    pub async fn wait(&self) {
        let _ = tokio::time::timeout(FLUSH_INTERVAL, self.shared.wake.notified()).await;
    }

    /// Removes all entries. Returns them in their order, and the number of those before them.
    pub fn take(&self) -> (usize, Vec<T>) {
        let mut buffered = self.lock();
        let (first, entries) = (buffered.taken, mem::take(&mut buffered.entries));
        buffered.of_company.clear();
        buffered.taken = first.wrapping_add(entries.len());
        (first, entries)
    }

    /// Counts entries that could not be saved.
    pub fn count_dropped(&self, count: usize) {
        self.shared.dropped.inc_by(count as u64);
    }

    fn lock(&self) -> MutexGuard<'_, Buffered<T>> {
        self.shared.buffered.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns an id that sorts by time and, within a millisecond, by the number of the entry: seconds,
/// milliseconds and number, then 32 random bits.
#[must_use]
pub fn entry_id(random: &Random, number: usize, at: Timestamp) -> String {
    let (ms, number) = (at.0.rem_euclid(1_000), number % (1 << 20));
    format!("{}{ms:03x}{number:05x}{}", id_lower_bound(at), hex::encode(random.bytes::<4>()))
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    impl LogEntry for CompanyId {
        fn company(&self) -> &CompanyId {
            self
        }
    }

    fn buffer() -> (LogBuffer<CompanyId>, impl Fn() -> u64) {
        let dropped = Counter::default();
        (LogBuffer::new(&dropped), move || dropped.get())
    }

    #[test]
    fn a_flood_of_one_company_leaves_room_for_others() {
        let (buffer, dropped) = buffer();
        for _ in 0..3 * MAX_BUFFERED {
            buffer.push("noisy".into());
        }
        assert_eq!(dropped(), (3 * MAX_BUFFERED - MAX_OF_COMPANY) as u64);
        buffer.push("quiet".into());
        let (_, entries) = buffer.take();
        assert_eq!(entries.len(), MAX_OF_COMPANY + 1);
        assert_eq!(entries.last(), Some(&"quiet".into()));
    }

    #[test]
    fn the_buffer_is_bounded_and_empty_after_it_was_taken() {
        let (buffer, dropped) = buffer();
        let fill = || {
            for company in ["a", "b", "c", "d"] {
                (0..MAX_OF_COMPANY).for_each(|_| buffer.push(company.into()));
            }
        };
        fill();
        assert_eq!(dropped(), 0);
        buffer.push("e".into());
        assert_eq!(dropped(), 1, "a company without entries, but the buffer is full");
        let (first, entries) = buffer.take();
        assert_eq!((first, entries.len()), (0, MAX_BUFFERED));
        let (first, entries) = buffer.take();
        assert_eq!((first, entries.len()), (MAX_BUFFERED, 0));
        fill();
        assert_eq!((dropped(), buffer.take().1.len()), (1, MAX_BUFFERED));
    }

    #[tokio::test]
    async fn a_company_that_has_used_half_of_its_share_is_saved_early() {
        let (buffer, _) = buffer();
        (1..EARLY_FLUSH).for_each(|_| buffer.push("busy".into()));
        assert!(buffer.wait().now_or_never().is_none());
        buffer.push("busy".into());
        assert!(buffer.wait().now_or_never().is_some());
        assert!(buffer.wait().now_or_never().is_none());
    }

    #[test]
    fn entries_that_could_not_be_saved_are_counted() {
        let (buffer, dropped) = buffer();
        buffer.count_dropped(3);
        assert_eq!(dropped(), 3);
    }

    #[test]
    fn ids_sort_by_time_and_number() {
        let random = Random::seeded(1);
        let ids = [(1_000, 7), (1_999, 1), (1_999, 2), (2_000, 0)];
        let ids = ids.map(|(at, number)| entry_id(&random, number, Timestamp(at)));
        assert!(ids.is_sorted() && ids.iter().all(|id| id.len() == 24), "{ids:?}");
    }
}
