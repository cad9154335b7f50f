//! Scheduled changes of state, ordered by due time.

use std::collections::BTreeSet;

use tollhouse_platform::clock::Timestamp;

pub(crate) struct TimerQueue<D>(BTreeSet<(Timestamp, D)>);

impl<D> Default for TimerQueue<D> {
    fn default() -> TimerQueue<D> {
        TimerQueue(BTreeSet::new())
    }
}

impl<D: Ord> TimerQueue<D> {
    pub(crate) fn schedule(&mut self, at: Timestamp, due: D) {
        self.0.insert((at, due));
    }

    pub(crate) fn has_due(&self, now: Timestamp) -> bool {
        self.0.first().is_some_and(|(at, _)| *at <= now)
    }

    /// Removes and returns the earliest entry that is due.
    pub(crate) fn pop_due(&mut self, now: Timestamp) -> Option<D> {
        if self.has_due(now) { self.0.pop_first().map(|(_, due)| due) } else { None }
    }
}
