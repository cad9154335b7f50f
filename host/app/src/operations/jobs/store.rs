//! Queries of failing jobs across all companies, for operators only.

use super::api::{FailingJobs, Retry};
use crate::state::storage::*;

/// A job that has failed at least ten times in a row, or is parked.
#[derive(Debug, FromRow, Serialize, JsonSchema)]
pub struct FailingJob {
    #[serde(rename = "company")]
    pub company_id: CompanyId,
    /// The kind of job, for example `charge.reconcile`.
    pub kind: String,
    /// The record that it works on, for example the id of a charge.
    pub subject: String,
    /// Consecutive failures.
    pub failures: i64,
    /// The error of the last run.
    pub error: Option<String>,
    /// When it was parked; `null` if it is retried.
    pub parked_at: Option<Timestamp>,
    /// When it is retried; `null` if it is parked.
    pub next_run_at: Option<Timestamp>,
}

/// Returns a page of failing jobs, those with the most failures first.
pub async fn list(
    tx: &mut Tx,
    filter: &FailingJobs,
    page: PageRequest,
) -> Result<ListPage<FailingJob>> {
    let filtered = |select| {
        DynamicStatement::from(select)
            .append(" FROM jobs WHERE failures >= 10")
            .append_if(" AND kind = ", filter.kind.as_ref())
            .append_if(" AND company_id = ", filter.company.as_ref())
    };
    let select = "SELECT company_id, kind, subject, failures, error, parked_at,
         CASE WHEN parked_at IS NULL THEN run_at END AS next_run_at";
    let order = " ORDER BY failures DESC, company_id DESC, kind DESC, subject DESC";
    tx.list(filtered, select, order, page).await
}

/// Makes up to `limit` failing jobs due now, except those in progress. Returns their number.
pub async fn retry(tx: &mut Tx, which: &Retry, now: Timestamp, limit: i64) -> Result<u64> {
    let sql = DynamicStatement::from("UPDATE jobs SET parked_at = NULL, run_at = ")
        .bind(now)
        .append(
            " WHERE (company_id, kind, subject) IN (
                 SELECT company_id, kind, subject FROM jobs
                 WHERE failures >= 10 AND lease IS NULL AND run_at > ",
        )
        .bind(now)
        .append_if(" AND company_id = ", which.company.as_ref())
        .append_if(" AND kind = ", which.kind.as_ref())
        .append_if(" AND subject = ", which.subject.as_ref())
        .append(" LIMIT ")
        .bind(limit)
        .append(" FOR UPDATE SKIP LOCKED)");
    let retried = tx.dynamic(&sql).run().await?;
    tx.wake_workers();
    Ok(retried)
}
