//! Storage of recordings.

use schemars::JsonSchema;
use serde::Serialize;

use super::api::RecordingList;
use tollhouse_platform::{
    clock::Timestamp,
    crypto::seal::{SealedColumn, sealed_column},
    store::{DynamicStatement, FromRow, Result, Tx, params},
    values::{id::CompanyId, listing::PageRequest},
};

pub const SEALED: [SealedColumn; 1] = [sealed_column!(
    plugin_recordings(company_id, id).recording,
    |company, id| context(company, id)
)];

pub fn context(company_id: &str, id: &str) -> String {
    format!("plugin_recordings/{company_id}/{id}")
}

/// A recording to store.
#[derive(Clone)]
pub struct NewRecording {
    pub company_id: CompanyId,
    pub id: String,
    pub plugin: String,
    pub version: String,
    pub digest: String,
    pub function: &'static str,
    pub outcome: &'static str,
    pub faithful: bool,
    pub began_at: Timestamp,
    /// Expiry, by the settings of the recording host.
    pub keep_until: Timestamp,
    /// Sealed.
    pub recording: String,
}

/// A recorded plugin call.
#[derive(Debug, FromRow, Serialize, JsonSchema)]
#[schemars(rename = "RecordedCall")]
pub struct RecordedCall {
    pub id: String,
    pub plugin: String,
    pub version: String,
    /// SHA-256 digest of the called component.
    pub digest: String,
    /// Called function, for example `checkout.start`.
    pub function: String,
    /// `ok`, the category of the fault, or `timed_out`.
    pub outcome: String,
    /// `true` if a replay with the masked data has the same outcome.
    pub faithful: bool,
    /// Company for which the call was made; empty for the service itself.
    pub company_id: CompanyId,
    pub began_at: Timestamp,
}

pub async fn insert(tx: &mut Tx, rows: &[NewRecording]) -> Result<()> {
    for row in rows {
        tx.sql(
            "INSERT INTO plugin_recordings
                 (company_id, id, plugin, version, digest, function, outcome, faithful,
                 began_at, keep_until, recording)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)",
        )
        .params(params![
            &row.company_id, &row.id, &row.plugin, &row.version, &row.digest, row.function,
            row.outcome, row.faithful, row.began_at, row.keep_until, &row.recording
        ])
        .run()
        .await?;
    }
    Ok(())
}

/// Returns a page of recordings, newest first, and their total number.
pub async fn list(
    tx: &mut Tx,
    plugin: &str,
    filter: &RecordingList,
    page: PageRequest,
) -> Result<(i64, Vec<RecordedCall>)> {
    let filtered = |select| {
        DynamicStatement::from(select)
            .append(" FROM plugin_recordings WHERE plugin = ")
            .bind(plugin)
            .append_if(" AND function = ", filter.function.as_ref())
            .append_if(" AND company_id = ", filter.company.as_ref())
    };
    let select =
        "SELECT id, plugin, version, digest, function, outcome, faithful, company_id, began_at";
    tx.list(filtered, select, " ORDER BY id DESC", page).await
}

/// Returns the company of a call, and the sealed recording.
pub async fn find(tx: &mut Tx, plugin: &str, id: &str) -> Result<Option<(String, String)>> {
    tx.sql("SELECT company_id, recording FROM plugin_recordings WHERE plugin = $1 AND id = $2")
        .params(params![plugin, id])
        .optional()
        .await
}

/// Deletes up to `limit` expired recordings of all companies, and returns their number.
pub async fn sweep(tx: &mut Tx, now: Timestamp, limit: i64) -> Result<u64> {
    tx.sql(
        "DELETE FROM plugin_recordings WHERE (company_id, id) IN (
             SELECT company_id, id FROM plugin_recordings WHERE keep_until < $1
             ORDER BY keep_until LIMIT $2 FOR UPDATE SKIP LOCKED)",
    )
    .params(params![now, limit])
    .run()
    .await
}
