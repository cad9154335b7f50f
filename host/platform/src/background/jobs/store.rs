//! The rows of jobs.

use super::{
    PARKED,
    slots::{Queue, ScanPosition},
};
use crate::{
    clock::Timestamp,
    store::{DynamicStatement, FromRow, Result, Tx, params},
    values::id::CompanyId,
};

/// A claimed job.
#[derive(Clone, Debug, PartialEq, FromRow)]
pub struct Job {
    pub company_id: CompanyId,
    pub kind: String,
    pub subject: String,
    /// Consecutive failures before this run.
    pub failures: i64,
    /// Consecutive runs before this one whose lease expired.
    pub crashes: i64,
    pub wakes: i64,
    pub lease: Option<String>,
    /// Time at which this run became due.
    pub due_at: Timestamp,
    /// Destination of the job's request; empty if it sends none.
    pub destination: String,
}

/// Enqueues a job for `run_at`, or earlier if it was due earlier. Joins the caller's transaction.
pub async fn enqueue(
    tx: &mut Tx,
    company_id: &CompanyId,
    kind: &str,
    subject: &str,
    run_at: Timestamp,
) -> Result<()> {
    enqueue_to(tx, company_id, kind, subject, "", run_at).await
}

/// Like [`enqueue`], for a job that sends its request to `destination`.
pub async fn enqueue_to(
    tx: &mut Tx,
    company_id: &CompanyId,
    kind: &str,
    subject: &str,
    destination: &str,
    run_at: Timestamp,
) -> Result<()> {
    tx.defer(
        "INSERT INTO jobs (company_id, kind, subject, destination, run_at, due_at, lease, wakes,
             failures)
         VALUES ($1, $2, $3, $5, $4, $4, NULL, 0, 0)
         ON CONFLICT (company_id, kind, subject) DO UPDATE SET
             wakes = jobs.wakes + 1,
             run_at = CASE WHEN jobs.lease IS NULL AND jobs.parked_at IS NULL
                                AND excluded.run_at < jobs.run_at
                           THEN excluded.run_at ELSE jobs.run_at END",
    )
    .params(params![company_id, kind, subject, run_at, destination])
    .execute()
    .await?;
    tx.wake_workers();
    Ok(())
}

/// Enqueues a job for `run_at`, unless it exists. Unlike [`enqueue`], it does not lock an existing
/// one.
pub async fn enqueue_once(
    tx: &mut Tx,
    company_id: &CompanyId,
    kind: &str,
    subject: &str,
    run_at: Timestamp,
) -> Result<()> {
    tx.defer(
        "INSERT INTO jobs (company_id, kind, subject, run_at, due_at, lease, wakes, failures)
         VALUES ($1, $2, $3, $4, $4, NULL, 0, 0)
         ON CONFLICT (company_id, kind, subject) DO NOTHING",
    )
    .params(params![company_id, kind, subject, run_at])
    .execute()
    .await
}

/// Appends items with a limit of 0 up to a power of two, so that few statements are prepared.
fn padded<T: Clone>(
    items: impl ExactSizeIterator<Item = (T, i64)>,
) -> impl Iterator<Item = (T, i64)> {
    let mut items: Vec<(T, i64)> = items.collect();
    if let Some((last, _)) = items.last().cloned() {
        items.resize(items.len().next_power_of_two(), (last, 0));
    }
    items.into_iter()
}

/// Kind, company, destination and number of due jobs.
pub type DueCount = (String, CompanyId, String, i64);

/// Counts the oldest `most` due jobs of each kind by company and destination.
pub async fn count_oldest_due(
    tx: &mut Tx,
    kinds: &[&str],
    now: Timestamp,
    most: i64,
) -> Result<Vec<DueCount>> {
    let mut sql = DynamicStatement::default();
    for (n, (kind, most)) in padded(kinds.iter().map(|kind| (*kind, most))).enumerate() {
        sql = sql
            .append(if n == 0 { "" } else { " UNION ALL " })
            .append(
                "SELECT kind, company_id, destination, COUNT(*) FROM (
                     SELECT kind, company_id, destination FROM jobs WHERE kind = ",
            )
            .bind(kind)
            .append(" AND run_at <= ")
            .bind(now)
            .append(" ORDER BY run_at LIMIT ")
            .bind(most)
            .append(") due GROUP BY kind, company_id, destination");
    }
    tx.dynamic(&sql).all().await
}

/// A step of a scan: the queue that it visits, and whether a job is due in it. Without a
/// destination, all queues of the company were visited; without a company, all companies were.
pub type ScanStep = (Option<CompanyId>, Option<String>, bool);

/// Visits the queues of a kind in the order of companies and destinations, from after a position,
/// in up to `steps` steps. Skips from queue to queue in the index, so that its cost is independent
/// of the number of jobs.
pub async fn scan_queues(
    tx: &mut Tx,
    kind: &str,
    after: &ScanPosition,
    now: Timestamp,
    steps: i64,
) -> Result<Vec<ScanStep>> {
    let (company_id, destination) = after;
    tx.sql(
        "SELECT company_id, destination, EXISTS (
             SELECT 1 FROM jobs WHERE jobs.kind = $1 AND jobs.company_id = queues.company_id
                 AND jobs.destination = queues.destination AND jobs.run_at <= $4)
         FROM (
             WITH RECURSIVE steps (company_id, destination, number) AS (
                 SELECT CAST($2 AS TEXT), CAST($3 AS TEXT), CAST(0 AS BIGINT)
                 UNION ALL
                 SELECT CASE WHEN destination IS NULL THEN (
                         SELECT MIN(jobs.company_id) FROM jobs
                         WHERE jobs.kind = $1 AND jobs.company_id > steps.company_id)
                     ELSE company_id END,
                     CASE WHEN destination IS NULL THEN '' ELSE (
                         SELECT MIN(jobs.destination) FROM jobs
                         WHERE jobs.kind = $1 AND jobs.company_id = steps.company_id
                             AND jobs.destination > steps.destination) END,
                     number + 1
                 FROM steps WHERE company_id IS NOT NULL AND number < $5)
             SELECT company_id, destination, number FROM steps WHERE number > 0) queues
         ORDER BY number",
    )
    .params(params![kind, company_id, destination.as_deref(), now, steps])
    .all()
    .await
}

/// Leases due jobs of a kind to this host, until `lease_ends`: up to this many of each queue,
/// oldest first.
pub async fn claim(
    tx: &mut Tx,
    kind: &str,
    lease: &str,
    [now, lease_ends]: [Timestamp; 2],
    shares: &[(Queue, i64)],
) -> Result<Vec<Job>> {
    let mut sql = DynamicStatement::from("UPDATE jobs SET lease = ")
        .bind(lease)
        .append(", run_at = ")
        .bind(lease_ends)
        .append(
            ", due_at = run_at,
                 crashes = crashes + CASE WHEN lease IS NULL THEN 0 ELSE 1 END
             WHERE (company_id, kind, subject) IN (SELECT company_id, kind, subject FROM (",
        );
    let shares = padded(shares.iter().map(|(queue, limit)| (queue, *limit)));
    for (n, ((company_id, destination), limit)) in shares.enumerate() {
        sql = sql
            .append(if n == 0 { "" } else { " UNION ALL " })
            .append("SELECT * FROM (SELECT company_id, kind, subject FROM jobs WHERE kind = ")
            .bind(kind)
            .append(" AND company_id = ")
            .bind(company_id)
            .append(" AND destination = ")
            .bind(destination)
            .append(" AND run_at <= ")
            .bind(now)
            .append(" ORDER BY run_at LIMIT ")
            .bind(limit)
            .append(" FOR UPDATE SKIP LOCKED) share");
    }
    // Selected from a compound, so that SQLite searches each row by its key.
    tx.dynamic(&sql.append(") due) RETURNING *")).all().await
}

/// Ends a run and deletes the job. If it was enqueued again meanwhile, or its lease was lost, the
/// transaction fails with [`Error::NotOneRow`](crate::store::Error::NotOneRow).
pub async fn finish(tx: &mut Tx, job: &Job) -> Result<()> {
    tx.defer(
        "DELETE FROM jobs WHERE company_id = $1 AND kind = $2 AND subject = $3
         AND lease = $4 AND wakes = $5",
    )
    .params(params![&job.company_id, &job.kind, &job.subject, &job.lease, job.wakes])
    .require_one()
    .await
}

/// The next run of a job, and its failures so far.
#[derive(Clone)]
pub struct Rescheduled {
    pub run_at: Timestamp,
    pub failures: i64,
    /// `None`: the previous one, if there are failures.
    pub error: Option<String>,
    /// It does not run before an operator retries it, even if it was enqueued again.
    pub is_parked: bool,
}

/// Ends a run. The next is at `run_at`, or now if the job was enqueued again meanwhile. No effect
/// if its lease was lost.
pub async fn reschedule(tx: &mut Tx, job: &Job, now: Timestamp, next: Rescheduled) -> Result<()> {
    let (run_at, parked_at) = match next.is_parked {
        true => (PARKED, Some(now)),
        false => (next.run_at, None),
    };
    let wakes: Option<i64> = tx
        .sql(
            "UPDATE jobs SET lease = NULL, crashes = 0, failures = $7, parked_at = $10,
                 error = CASE WHEN CAST($7 AS BIGINT) = 0 THEN NULL ELSE COALESCE($9, error) END,
                 run_at = CASE WHEN wakes = $5 OR CAST($10 AS BIGINT) IS NOT NULL
                               THEN CAST($6 AS BIGINT) ELSE $8 END
             WHERE company_id = $1 AND kind = $2 AND subject = $3 AND lease = $4
             RETURNING wakes",
        )
        .params(params![
            &job.company_id, &job.kind, &job.subject, &job.lease, job.wakes, run_at, next.failures,
            now, next.error, parked_at
        ])
        .optional_value()
        .await?;
    if wakes != Some(job.wakes) {
        tx.wake_workers();
    }
    Ok(())
}

/// The time of a job's next run, and its last error.
#[derive(Debug, FromRow)]
pub struct ScheduledJob {
    pub run_at: Timestamp,
    pub error: Option<String>,
}

/// Returns the schedule of a job that is not parked.
pub async fn find(
    tx: &mut Tx,
    company_id: &CompanyId,
    kind: &str,
    subject: &str,
) -> Result<Option<ScheduledJob>> {
    tx.sql(
        "SELECT run_at, error FROM jobs
         WHERE company_id = $1 AND kind = $2 AND subject = $3 AND parked_at IS NULL",
    )
    .params(params![company_id, kind, subject])
    .optional()
    .await
}

/// Returns when the next job of each kind is due. Skips from kind to kind in the index, so that its
/// cost is independent of the number of jobs.
pub async fn next_due(tx: &mut Tx) -> Result<Vec<(String, Timestamp)>> {
    tx.sql(
        "SELECT kind, (SELECT MIN(run_at) FROM jobs WHERE jobs.kind = kinds.kind) FROM (
             WITH RECURSIVE kinds (kind) AS (
                 SELECT MIN(kind) FROM jobs
                 UNION ALL
                 SELECT (SELECT MIN(jobs.kind) FROM jobs WHERE jobs.kind > kinds.kind) FROM kinds
                 WHERE kinds.kind IS NOT NULL)
             SELECT kind FROM kinds WHERE kind IS NOT NULL) kinds",
    )
    .all()
    .await
}
