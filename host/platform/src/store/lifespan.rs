//! Test only: simulates a crash of the host between two transactions.

use std::{future::pending, sync::Arc};

use tokio::sync::watch;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Endless,
    /// Number of transactions that may still begin.
    Left(usize),
    /// One more transaction was requested.
    Ended,
}

/// The transactions left to a store. Cheap to clone.
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

    /// Resolves when a transaction beyond the limit is requested.
    pub(super) async fn ended(&self) {
        let mut state = self.0.subscribe();
        let end = state.wait_for(|state| *state == State::Ended).await;
        end.expect("the sender lives in self");
    }

    /// Counts a transaction. Blocks forever beyond the limit.
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
