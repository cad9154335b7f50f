//! Storage of export files, finished or being written, with the bytes reserved for each.

use crate::state::storage::*;

/// Combined usage of several export files.
#[derive(Clone, Copy, Debug, FromRow)]
pub struct ExportUsage {
    pub files: i64,
    pub bytes: i64,
    /// Earliest planned removal.
    pub removed_at: Option<Timestamp>,
}

/// Serializes reservations until the transaction ends.
pub async fn lock(tx: &mut Tx) -> Result<()> {
    tx.sql("UPDATE user_exports SET bytes = 0 WHERE company_id = '' AND name = ''").execute().await
}

/// Returns the usage of all files except `name`, of one company or of all.
pub async fn usage(tx: &mut Tx, company_id: Option<&CompanyId>, name: &str) -> Result<ExportUsage> {
    let sql = DynamicStatement::from(
        "SELECT COUNT(*) AS files, CAST(COALESCE(SUM(bytes), 0) AS BIGINT) AS bytes,
             MIN(removed_at) AS removed_at
         FROM user_exports WHERE company_id <> '' AND name <> ",
    );
    tx.dynamic(&sql.bind(name).append_if(" AND company_id = ", company_id)).one().await
}

pub async fn upsert(
    tx: &mut Tx,
    company_id: &CompanyId,
    name: &str,
    bytes: i64,
    removed_at: Timestamp,
) -> Result<()> {
    tx.sql(
        "INSERT INTO user_exports (company_id, name, bytes, removed_at) VALUES ($1, $2, $3, $4)
         ON CONFLICT (company_id, name) DO UPDATE SET
             bytes = excluded.bytes, removed_at = excluded.removed_at",
    )
    .params(params![company_id, name, bytes, removed_at])
    .execute()
    .await
}

pub async fn delete(tx: &mut Tx, company_id: &CompanyId, name: &str) -> Result<()> {
    tx.sql("DELETE FROM user_exports WHERE company_id = $1 AND name = $2")
        .params(params![company_id, name])
        .execute()
        .await
}

/// Deletes the rows of files whose planned removal was before `time`.
pub async fn delete_stale(tx: &mut Tx, time: Timestamp) -> Result<u64> {
    tx.sql("DELETE FROM user_exports WHERE company_id <> '' AND removed_at < $1")
        .bind(time)
        .run()
        .await
}
