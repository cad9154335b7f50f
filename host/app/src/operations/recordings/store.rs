//! Storage of recordings.

use super::api::RecordingList;
use crate::state::storage::*;

pub const SEALED: [SealedColumn; 1] = [sealed_column!(
    plugin_recordings(company_id, id).recording,
    |company, id| context(company, id)
)];

pub fn context(company_id: &str, id: &str) -> String {
    format!("plugin_recordings/{company_id}/{id}")
}

#[derive(Clone)]
pub struct NewRecording {
    pub call: RecordedCall,
    /// Expiry, by the settings of the recording host.
    pub keep_until: Timestamp,
    /// Sealed.
    pub recording: String,
}

/// A recorded plugin call.
#[derive(Clone, Debug, FromRow, Serialize, JsonSchema)]
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
    for NewRecording { call, keep_until, recording } in rows {
        tx.sql(
            "INSERT INTO plugin_recordings
                 (company_id, id, plugin, version, digest, function, outcome, faithful,
                 began_at, keep_until, recording)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)",
        )
        .params(params![
            &call.company_id, &call.id, &call.plugin, &call.version, &call.digest, &call.function,
            &call.outcome, call.faithful, call.began_at, keep_until, recording
        ])
        .execute()
        .await?;
    }
    Ok(())
}

pub async fn list(
    tx: &mut Tx,
    plugin: &str,
    filter: &RecordingList,
    page: PageRequest,
) -> Result<ListPage<RecordedCall>> {
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
