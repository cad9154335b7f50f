//! Storage of approvals.

use crate::state::storage::*;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema, EnumString, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum ApprovalState {
    Pending,
    Approved,
    Rejected,
    /// Approved, and carried out.
    Used,
}

text_columns!(ApprovalState);

/// An action that needs the approval of a second operator.
#[derive(Clone, Debug, FromRow, Serialize, JsonSchema)]
pub struct Approval {
    pub id: String,
    /// Id of the company that the action concerns; empty for the service.
    #[serde(rename = "company")]
    pub company_id: String,
    /// The permission that the action requires, also of the second operator.
    pub permission: String,
    /// Action, for example `operator.credit`.
    pub action: String,
    /// Object and parameters of the action.
    #[schemars(with = "Value")]
    pub detail: Json<Value>,
    pub state: ApprovalState,
    /// Name of the operator that requested the action.
    pub requested_by: String,
    pub requested_at: Timestamp,
    /// Until this time, the approval can be decided, and an approved action can be carried out.
    pub expires_at: Timestamp,
    /// Name of the operator that decided.
    pub decided_by: Option<String>,
    pub decided_at: Option<Timestamp>,
}

const SELECT: &str = "SELECT id, company_id, permission, action, detail, state, requested_by,
     requested_at, expires_at, decided_by, decided_at";

pub async fn insert(tx: &mut Tx, approval: &Approval, digest: &str, operator: &str) -> Result<()> {
    tx.sql(
        "INSERT INTO approvals (id, digest, company_id, permission, action, detail, state,
             operator_id, requested_by, requested_at, expires_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)",
    )
    .params(params![
        &approval.id, digest, &approval.company_id, &approval.permission, &approval.action,
        &approval.detail, approval.state, operator, &approval.requested_by, approval.requested_at,
        approval.expires_at,
    ])
    .execute()
    .await
}

/// Returns the approval of an action that has not expired. A decision takes precedence.
pub async fn find_current(tx: &mut Tx, digest: &str, now: Timestamp) -> Result<Option<Approval>> {
    let select = DynamicStatement::from(SELECT)
        .append(" FROM approvals WHERE digest = ")
        .bind(digest)
        .append(" AND expires_at > ")
        .bind(now)
        .append(
            " AND state <> 'used'
             ORDER BY CASE state WHEN 'pending' THEN 1 ELSE 0 END, requested_at DESC, id DESC
             LIMIT 1",
        );
    tx.dynamic(&select).optional().await
}

/// Returns a page of approvals, the newest first.
pub async fn list(
    tx: &mut Tx,
    state: Option<&String>,
    page: PageRequest,
) -> Result<ListPage<Approval>> {
    let filtered = |select| {
        DynamicStatement::from(select)
            .append(" FROM approvals WHERE TRUE")
            .append_if(" AND state = ", state)
    };
    tx.list(filtered, SELECT, " ORDER BY requested_at DESC, id DESC", page).await
}

/// Locks an approval. Returns it with the id of the operator that requested it.
pub async fn lock(tx: &mut Tx, id: &str) -> Result<Option<(Approval, String)>> {
    let locked = tx
        .sql("SELECT operator_id FROM approvals WHERE id = $1 FOR UPDATE")
        .bind(id)
        .optional_value()
        .await?;
    let Some(operator) = locked else { return Ok(None) };
    let select = DynamicStatement::from(SELECT).append(" FROM approvals WHERE id = ").bind(id);
    Ok(Some((tx.dynamic(&select).one().await?, operator)))
}

/// Marks an approval as used.
pub async fn mark_used(tx: &mut Tx, id: &str) -> Result<bool> {
    tx.sql("UPDATE approvals SET state = 'used' WHERE id = $1 AND state = 'approved'")
        .bind(id)
        .affects_one()
        .await
}

pub async fn decide(tx: &mut Tx, approval: &Approval) -> Result<()> {
    tx.sql("UPDATE approvals SET state = $2, decided_by = $3, decided_at = $4 WHERE id = $1")
        .params(params![&approval.id, approval.state, &approval.decided_by, approval.decided_at,])
        .execute()
        .await
}
