//! The rows of jobs.

use crate::{
    clock::Timestamp,
    store::{FromRow, Result, Tx, params},
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
    pub wakes: i64,
    pub lease: Option<String>,
    /// Time at which this run became due.
    pub due_at: Timestamp,
}

/// Enqueues a job for `run_at`, or earlier if it was due earlier. Joins the caller's transaction.
pub async fn enqueue(
    tx: &mut Tx,
    company_id: &CompanyId,
    kind: &str,
    subject: &str,
    run_at: Timestamp,
) -> Result<()> {
    tx.defer(
        "INSERT INTO jobs (company_id, kind, subject, run_at, due_at, lease, wakes, failures)
         VALUES ($1, $2, $3, $4, $4, NULL, 0, 0)
         ON CONFLICT (company_id, kind, subject) DO UPDATE SET
             wakes = jobs.wakes + 1,
             run_at = CASE WHEN jobs.lease IS NULL AND excluded.run_at < jobs.run_at
                           THEN excluded.run_at ELSE jobs.run_at END",
    )
    .params(params![company_id, kind, subject, run_at])
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

/// Leases up to `limit` due jobs of a kind to this host, until `lease_ends`.
pub async fn claim(
    tx: &mut Tx,
    kind: &str,
    lease: &str,
    [now, lease_ends]: [Timestamp; 2],
    limit: i64,
) -> Result<Vec<Job>> {
    tx.sql(
        "UPDATE jobs SET lease = $1, run_at = $2, due_at = run_at
         WHERE (company_id, kind, subject) IN (
             SELECT company_id, kind, subject FROM jobs WHERE kind = $3 AND run_at <= $4
             ORDER BY run_at LIMIT $5 FOR UPDATE SKIP LOCKED)
         RETURNING *",
    )
    .params(params![lease, lease_ends, kind, now, limit])
    .all()
    .await
}

/// Ends a run and deletes the job, unless it was enqueued again meanwhile.
pub async fn finish(tx: &mut Tx, job: &Job, now: Timestamp) -> Result<()> {
    let deleted = tx
        .sql(
            "DELETE FROM jobs WHERE company_id = $1 AND kind = $2 AND subject = $3
             AND lease = $4 AND wakes = $5",
        )
        .params(params![&job.company_id, &job.kind, &job.subject, &job.lease, job.wakes])
        .run()
        .await?;
    if deleted == 0 { reschedule(tx, job, now, now, 0).await } else { Ok(()) }
}

/// Ends a run. The next is at `run_at`, or now if the job was enqueued again meanwhile. No effect
/// if its lease was lost.
pub async fn reschedule(
    tx: &mut Tx,
    job: &Job,
    run_at: Timestamp,
    now: Timestamp,
    failures: i64,
) -> Result<()> {
    let wakes: Option<i64> = tx
        .sql(
            "UPDATE jobs SET lease = NULL, failures = $7,
                 run_at = CASE WHEN wakes = $5 THEN CAST($6 AS BIGINT) ELSE $8 END
             WHERE company_id = $1 AND kind = $2 AND subject = $3 AND lease = $4
             RETURNING wakes",
        )
        .params(params![
            &job.company_id, &job.kind, &job.subject, &job.lease, job.wakes, run_at, failures, now
        ])
        .optional_value()
        .await?;
    if wakes != Some(job.wakes) {
        tx.wake_workers();
    }
    Ok(())
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
