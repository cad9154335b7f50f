//! Work that follows from a change: claimed under a lease, run, retried.
//!
//! A job is named by company, kind and subject, and there is one of each name: waking it again while it waits brings it forward;
//! waking it while it runs makes it run once more. A host that dies leaves a lease that ends. Which kinds there are is told by
//! the table in `app.rs`; this module knows no slice. Each kind has slots of its own on each host, so that one whose jobs hang, or
//! are many, keeps no other waiting. A kind that a host does not know is left to hosts that do.

mod store;
mod worker;

use futures::future::BoxFuture;

pub use self::{
    store::{Job, wake},
    worker::{Workers, advance, run_due, start_due, under_way, work},
};
use crate::{app::App, clock::Timestamp, error::Result};

/// How long a job may run before another host may take it: longer than any plugin call or delivery.
pub const LEASE_SECONDS: i64 = 120;

/// What is left to do after a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    Done,
    At(Timestamp),
}

/// Runs one job. An error is logged and tried again, later each time.
pub type Handler = fn(App, Job) -> BoxFuture<'static, Result<Next>>;

/// When a job that failed `failures` times is tried again.
fn backoff(now: Timestamp, failures: i64) -> Timestamp {
    let seconds = 5_i64 << failures.clamp(0, 9);
    now.plus_seconds(seconds.min(1_800))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_tried_again_later_each_time() {
        let seconds: Vec<i64> =
            [0, 1, 2, 8, 9, 100].map(|n| backoff(Timestamp(0), n).unix_seconds()).to_vec();
        assert_eq!(seconds, [5, 10, 20, 1280, 1800, 1800]);
    }
}
