//! Storage of the reports of hosts.

use super::ServedVersion;
use crate::state::storage::*;

/// A host, as it last reported.
#[derive(Clone, Debug, FromRow, Serialize, JsonSchema)]
pub struct HostRow {
    /// Id of the process; a restarted host has another one.
    pub id: String,
    /// Version of the program.
    pub version: String,
    /// `false` if it runs no jobs.
    pub runs_jobs: bool,
    /// Number of job runs in progress.
    pub running_jobs: i64,
    /// Plugin versions that it serves.
    #[schemars(with = "Vec<ServedVersion>")]
    pub plugins: Json<Vec<ServedVersion>>,
    pub started_at: Timestamp,
    /// Time of the last report, every 15 seconds.
    pub seen_at: Timestamp,
}

/// A host on this database. It is removed when it stops, or a day after its last report.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Host")]
pub struct HostView {
    #[serde(flatten)]
    pub row: HostRow,
    /// `true` if the host has not reported for a minute.
    pub is_lost: bool,
    /// `true` for the host that sends this response.
    pub is_this_host: bool,
}

/// Stores a report, and deletes the hosts without one since `forgotten`.
pub async fn report(tx: &mut Tx, row: &HostRow, forgotten: Timestamp) -> Result<()> {
    tx.sql(
        "INSERT INTO hosts (id, version, runs_jobs, running_jobs, plugins, started_at, seen_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7)
         ON CONFLICT (id) DO UPDATE SET running_jobs = excluded.running_jobs,
             plugins = excluded.plugins, seen_at = excluded.seen_at",
    )
    .params(params![
        &row.id,
        &row.version,
        row.runs_jobs,
        row.running_jobs,
        row.plugins.clone(),
        row.started_at,
        row.seen_at
    ])
    .execute()
    .await?;
    tx.sql("DELETE FROM hosts WHERE seen_at < $1").params(params![forgotten]).run().await.map(drop)
}

pub async fn delete(tx: &mut Tx, id: &str) -> Result<()> {
    tx.sql("DELETE FROM hosts WHERE id = $1").params(params![id]).run().await.map(drop)
}

pub async fn list(tx: &mut Tx) -> Result<Vec<HostRow>> {
    tx.sql(
        "SELECT id, version, runs_jobs, running_jobs, plugins, started_at, seen_at FROM hosts
         ORDER BY started_at DESC, id DESC",
    )
    .all()
    .await
}
