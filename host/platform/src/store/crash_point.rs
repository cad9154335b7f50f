//! Test only: simulates a crash of the host between two transactions.

use std::{future::pending, sync::Arc};

use tokio::sync::watch;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Disabled,
    /// Number of transactions that may still begin.
    Remaining(usize),
    /// One more transaction was requested.
    Crashed,
}

/// The transactions left to a store. Cheap to clone.
#[derive(Clone)]
pub(super) struct CrashPoint(Arc<watch::Sender<State>>);

impl Default for CrashPoint {
    fn default() -> CrashPoint {
        CrashPoint(Arc::new(watch::Sender::new(State::Disabled)))
    }
}

impl CrashPoint {
    pub(super) fn crash_after(&self, transactions: usize) {
        self.0.send_replace(State::Remaining(transactions));
    }

    /// Resolves when a transaction beyond the limit is requested.
    pub(super) async fn crashed(&self) {
        let mut state = self.0.subscribe();
        let end = state.wait_for(|state| *state == State::Crashed).await;
        end.expect("the sender lives in self");
    }

    /// Counts a transaction. Blocks forever beyond the limit.
    pub(super) async fn begin(&self) {
        if *self.0.borrow() == State::Disabled {
            return;
        }
        self.0.send_modify(|state| {
            *state = match *state {
                State::Disabled => State::Disabled,
                State::Remaining(0) | State::Crashed => State::Crashed,
                State::Remaining(more) => State::Remaining(more - 1),
            };
        });
        if *self.0.borrow() == State::Crashed {
            pending().await
        }
    }
}
