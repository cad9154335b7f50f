//! Jobs: deferred work that is claimed under a lease, run and retried.
//!
//! A job is identified by company, kind and subject. If it is enqueued again while it waits, the
//! earlier time applies; while it runs, it runs again afterwards. The lease of a crashed host
//! expires. Each kind has its own slots per host, so that slow or numerous jobs of one kind do not
//! delay others; companies and destinations share them as `slots` describes. A host leaves jobs
//! of unknown kinds to other hosts.
//!
//! A job that fails is retried with backoff, at most 30 minutes apart; operators see jobs with at
//! least ten consecutive failures. It is **parked**, so that only an operator's retry runs it
//! again, if none of its last five runs ended before its lease expired, or if its kind permits that
//! (see [`WorkerParts::parked_kinds`]) and it has failed for about a day.

mod claim;
pub mod metrics;
mod slots;
mod store;
mod worker;

use futures::future::BoxFuture;

pub use self::{
    store::{Job, ScheduledJob, enqueue, enqueue_once, enqueue_to, find, finish},
    worker::{
        RunSimulators, WorkerParts, Workers, advance, run_due, run_workers, start_due,
        wait_until_idle,
    },
};
use crate::{clock::Timestamp, error::Result};

/// Job lease duration: longer than any plugin call or webhook delivery.
pub const LEASE_SECONDS: i64 = 120;

/// `run_at` of parked jobs: 9999-12-31.
const PARKED: Timestamp = Timestamp(253_402_214_400_000);

/// The next step after a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobResult {
    Done,
    RescheduleAt(Timestamp),
    /// The job could not run yet. Its failures and its error stay.
    PostponeTo(Timestamp),
    /// Like `Done`, and already recorded: the handler has called [`finish`] in its transaction.
    Finished,
}

/// Runs one job. An error is logged, and the job is retried with backoff.
pub type Handler<H> = fn(H, Job) -> BoxFuture<'static, Result<JobResult>>;

/// An application with jobs.
pub trait JobHost: Clone + Send + Sync + 'static {
    fn workers(&self) -> &Workers<Self>;

    /// Returns the host for one operation, here one run of a job.
    fn for_operation(&self) -> Self;
}

/// Consecutive runs during which the host stopped, after which a job is parked as a likely cause.
const MAX_CRASHES: i64 = 5;
/// Failures in a row, within about a day, after which a job of some kinds is parked.
const PARK_AFTER_FAILURES: i64 = 50;
/// Failures in a row, within about two days, after which a job is abandoned if its record can be
/// handled in another way, for example by an operator.
pub const ABANDON_AFTER_FAILURES: i64 = 100;
/// Failures in a row after which a job is listed for operators. Statements name it, so that they
/// use the index of these jobs.
pub const LISTED_FAILURES: i64 = 10;

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
