//! Storage of the audit log.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use tollhouse_platform::{
    clock::Timestamp,
    store::{DynamicStatement, FromRow, Json, Result, Tx, params},
    values::{id::Owner, listing::PageRequest},
};

/// An operator's action.
#[derive(Debug, FromRow, Serialize, JsonSchema)]
#[schemars(rename = "AuditEntry")]
pub struct AuditEntry {
    pub id: String,
    /// Actor: `operator`.
    pub actor: String,
    /// Action, for example `company.edit`.
    pub action: String,
    /// Object and parameters of the action; never a secret.
    #[schemars(with = "Value")]
    pub detail: Json<Value>,
    pub created_at: Timestamp,
}

pub async fn insert(
    tx: &mut Tx,
    id: &str,
    owner: &Owner,
    actor: &str,
    action: &str,
    detail: Value,
    now: Timestamp,
) -> Result<()> {
    tx.sql(
        "INSERT INTO audit_log (company_id, id, actor, action, detail, created_at)
         VALUES ($1, $2, $3, $4, $5, $6)",
    )
    .params(params![owner, id, actor, action, Json(detail), now])
    .run()
    .await?;
    Ok(())
}

/// Returns a page of entries, newest first, and their total number.
pub async fn list(tx: &mut Tx, owner: &Owner, page: PageRequest) -> Result<(i64, Vec<AuditEntry>)> {
    let filtered = |select| {
        DynamicStatement::from(select).append(" FROM audit_log WHERE company_id = ").bind(owner)
    };
    let select = "SELECT id, actor, action, detail, created_at";
    tx.list(filtered, select, " ORDER BY created_at DESC, id DESC", page).await
}
