//! Storage of the audit log.

use crate::state::storage::*;

/// An operator's action.
#[derive(Debug, FromRow, Serialize, JsonSchema)]
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

/// Records an action on a company or on the service.
pub async fn record(
    tx: &mut Tx,
    app: &App,
    owner: impl Into<Owner>,
    action: &str,
    detail: Value,
) -> Result<()> {
    let (owner, now): (Owner, _) = (owner.into(), app.clock.now());
    tx.sql(
        "INSERT INTO audit_log (company_id, id, actor, action, detail, created_at)
         VALUES ($1, $2, $3, $4, $5, $6)",
    )
    .params(params![owner.column(), app.random.id(now), "operator", action, Json(detail), now])
    .execute()
    .await
}

pub async fn list(tx: &mut Tx, owner: &Owner, page: PageRequest) -> Result<ListPage<AuditEntry>> {
    let filtered = |select| {
        DynamicStatement::from(select).append(" FROM audit_log WHERE company_id = ").bind(owner)
    };
    let select = "SELECT id, actor, action, detail, created_at";
    tx.list(filtered, select, " ORDER BY created_at DESC, id DESC", page).await
}
