//! The end of a host between two of its transactions, for tests of what a crash leaves behind.

use std::{future::pending, sync::Arc};

use tokio::sync::watch;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Endless,
    /// So many transactions may begin still.
    Left(usize),
    /// One more was wanted.
    Ended,
}

/// How many transactions a store does still. Cheap to clone.
#[derive(Clone)]
pub(super) struct Lifespan(Arc<watch::Sender<State>>);

impl Default for Lifespan {
    fn default() -> Lifespan {
        Lifespan(Arc::new(watch::Sender::new(State::Endless)))
    }
}

impl Lifespan {
    pub(super) fn end_after(&self, transactions: usize) {
        self.0.send_replace(State::Left(transactions));
    }

    /// Resolves at the end.
    pub(super) async fn ended(&self) {
        let mut state = self.0.subscribe();
        let end = state.wait_for(|state| *state == State::Ended).await;
        end.expect("its sender is here");
    }

    /// A transaction begins. Whoever comes too late for it waits for good.
    pub(super) async fn begin(&self) {
        if *self.0.borrow() == State::Endless {
            return;
        }
        self.0.send_modify(|state| {
            *state = match *state {
                State::Endless => State::Endless,
                State::Left(0) | State::Ended => State::Ended,
                State::Left(more) => State::Left(more - 1),
            };
        });
        if *self.0.borrow() == State::Ended {
            pending().await
        }
    }
}
