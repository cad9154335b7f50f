//! Test only: simulates a crash of the host between two transactions.

use std::{future::pending, sync::Arc};

use tokio::sync::watch;

/// The number of transactions that may still begin; -1 after one more was requested, and `None` if
/// the number is not limited. Cheap to clone.
#[derive(Clone, Default)]
pub struct CrashPoint(Arc<watch::Sender<Option<i64>>>);

impl CrashPoint {
    /// Each transaction after this many further ones blocks forever.
    pub fn crash_after(&self, transactions: usize) {
        self.0.send_replace(Some(i64::try_from(transactions).unwrap_or(i64::MAX)));
    }

    /// Resolves when a transaction beyond the limit is requested.
    pub async fn crashed(&self) {
        let mut left = self.0.subscribe();
        left.wait_for(|left| *left == Some(-1)).await.expect("the sender lives in self");
    }

    /// Counts a transaction. Blocks forever beyond the limit.
    pub(super) async fn begin(&self) {
        if self.0.borrow().is_none() {
            return;
        }
        self.0.send_modify(|left| *left = left.map(|left| (left - 1).max(-1)));
        if *self.0.borrow() == Some(-1) {
            pending().await
        }
    }
}
