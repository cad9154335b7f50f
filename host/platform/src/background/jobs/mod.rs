//! Jobs: deferred work that is claimed under a lease, run and retried.
//!
//! A job is identified by company, kind and subject. If it is enqueued again while it waits, the
//! earlier time applies; while it runs, it runs again afterwards. The lease of a crashed host
//! expires. Each kind has its own slots per host, so that slow or numerous jobs of one kind do not
//! delay others. A host leaves jobs of unknown kinds to other hosts.

pub mod metrics;
mod store;
mod worker;

use futures::future::BoxFuture;

pub use self::{
    store::{Job, enqueue, enqueue_once},
    worker::{
        RunSimulators, WorkerParts, Workers, advance, run_due, run_workers, start_due,
        wait_until_idle,
    },
};
use crate::{clock::Timestamp, error::Result};

/// Job lease duration: longer than any plugin call or webhook delivery.
pub const LEASE_SECONDS: i64 = 120;

/// The next step after a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobResult {
    Done,
    RescheduleAt(Timestamp),
}

/// Runs one job. An error is logged, and the job is retried with backoff.
pub type Handler<H> = fn(H, Job) -> BoxFuture<'static, Result<JobResult>>;

/// An application with jobs.
pub trait JobHost: Clone + Send + Sync + 'static {
    fn workers(&self) -> &Workers<Self>;

    /// Returns the host for one operation, here one run of a job.
    fn for_operation(&self) -> Self;
}

/// Returns when a job that failed `failures` times is retried.
fn backoff(now: Timestamp, failures: i64) -> Timestamp {
    let seconds = 5_i64 << failures.clamp(0, 9);
    now.plus_seconds(seconds.min(1_800))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backoff_doubles_from_5_s_to_30_min() {
        let seconds: Vec<i64> =
            [0, 1, 2, 8, 9, 100].map(|n| backoff(Timestamp(0), n).unix_seconds()).to_vec();
        assert_eq!(seconds, [5, 10, 20, 1280, 1800, 1800]);
    }
}
