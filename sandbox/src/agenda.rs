//! What happens by itself as time passes, in the order of time.

use std::collections::BTreeSet;

use tollhouse_platform::clock::Timestamp;

pub(crate) struct Agenda<D>(BTreeSet<(Timestamp, D)>);

impl<D> Default for Agenda<D> {
    fn default() -> Agenda<D> {
        Agenda(BTreeSet::new())
    }
}

impl<D: Ord> Agenda<D> {
    pub(crate) fn add(&mut self, at: Timestamp, due: D) {
        self.0.insert((at, due));
    }

    pub(crate) fn is_due(&self, now: Timestamp) -> bool {
        self.0.first().is_some_and(|(at, _)| *at <= now)
    }

    /// The earliest of what is due.
    pub(crate) fn take(&mut self, now: Timestamp) -> Option<D> {
        if self.is_due(now) { self.0.pop_first().map(|(_, due)| due) } else { None }
    }
}
