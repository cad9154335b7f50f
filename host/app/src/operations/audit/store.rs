//! Storage of the audit log and its hash chains.

use serde::Deserialize;

use super::{
    Actor,
    chain::{self, ChainEnd},
};
use crate::state::storage::*;

/// An operator's action.
#[derive(Clone, Debug, FromRow, Serialize, Deserialize, JsonSchema)]
pub struct AuditEntry {
    pub id: String,
    /// Position in the log of this company or of the service, counted from 1; `null` for entries
    /// written by versions that did not number them.
    pub number: Option<i64>,
    /// Name of the operator, or `operator` for the configured operator token.
    pub actor: String,
    /// Id of the operator; `null` for the configured operator token.
    pub actor_id: Option<String>,
    /// Id of the operator's token.
    pub credential: Option<String>,
    /// Address of the connection: that of the client, or of the last proxy.
    pub address: Option<String>,
    pub request_id: Option<String>,
    /// Action, for example `company.edit`.
    pub action: String,
    /// Object and parameters of the action; never a secret.
    #[schemars(with = "Value")]
    pub detail: Json<Value>,
    pub created_at: Timestamp,
    /// SHA-256, in hexadecimal, of this entry and the hash of the previous entry.
    pub hash: Option<String>,
}

const SELECT: &str = "SELECT id, number, actor, actor_id, credential, address, request_id, action,
     detail, created_at, hash";

/// Records an action on a company or on the service.
pub async fn record(
    tx: &mut Tx,
    app: &App,
    actor: &Actor,
    owner: impl Into<Owner>,
    action: &str,
    detail: Value,
) -> Result<()> {
    let (owner, now): (Owner, _) = (owner.into(), app.clock.now());
    // Locks the chain: entries of one owner are numbered in the order of their commits.
    let end: ChainEnd = tx
        .sql(
            "INSERT INTO audit_chains AS chain (company_id, number, hash) VALUES ($1, 0, '')
             ON CONFLICT (company_id) DO UPDATE SET number = chain.number
             RETURNING number, hash",
        )
        .params(params![owner.column()])
        .one()
        .await?;
    let mut entry = AuditEntry {
        id: app.random.id(now),
        number: Some(end.number + 1),
        actor: actor.name.clone(),
        actor_id: (!actor.id.is_empty()).then(|| actor.id.clone()),
        credential: actor.credential.clone(),
        address: actor.address.map(|address| address.to_string()),
        request_id: Some(actor.request_id.clone()),
        action: action.to_owned(),
        detail: Json(detail),
        created_at: now,
        hash: None,
    };
    let hash = chain::hash(&end.hash, owner.column(), &entry);
    entry.hash = Some(hash.clone());
    insert(tx, &owner, entry).await?;
    tx.sql("UPDATE audit_chains SET number = number + 1, hash = $2 WHERE company_id = $1")
        .params(params![owner.column(), hash])
        .execute()
        .await
}

async fn insert(tx: &mut Tx, owner: &Owner, entry: AuditEntry) -> Result<()> {
    tx.sql(
        "INSERT INTO audit_log (company_id, id, number, actor, actor_id, credential, address,
             request_id, action, detail, created_at, hash)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)",
    )
    .params(params![
        owner.column(),
        entry.id,
        entry.number,
        entry.actor,
        entry.actor_id,
        entry.credential,
        entry.address,
        entry.request_id,
        entry.action,
        entry.detail,
        entry.created_at,
        entry.hash,
    ])
    .execute()
    .await
}

/// Returns a page of a log, newest first.
pub async fn list(
    tx: &mut Tx,
    owner: &Owner,
    request_id: Option<&str>,
    page: PageRequest,
) -> Result<ListPage<AuditEntry>> {
    let filtered = |select| {
        DynamicStatement::from(select)
            .append(" FROM audit_log WHERE company_id = ")
            .bind(owner)
            .append_if(" AND request_id = ", request_id)
    };
    tx.list(filtered, SELECT, " ORDER BY created_at DESC, number DESC, id DESC", page).await
}

/// Returns the entries whose detail names a payment, oldest first, also those of approvals.
pub async fn list_of_payment(
    tx: &mut Tx,
    company_id: &CompanyId,
    payment: &str,
) -> Result<Vec<AuditEntry>> {
    // The second condition lets SQLite use the partial index.
    tx.sql(
        "SELECT id, number, actor, actor_id, credential, address, request_id, action, detail,
             created_at, hash
         FROM audit_log
         WHERE company_id = $1
             AND COALESCE(detail ->> 'payment', detail -> 'detail' ->> 'payment') = $2
             AND COALESCE(detail ->> 'payment', detail -> 'detail' ->> 'payment') IS NOT NULL
         ORDER BY created_at, number",
    )
    .params(params![company_id, payment])
    .all()
    .await
}

/// Returns up to `limit` entries of a chain after a number, in their order.
pub async fn list_after(
    tx: &mut Tx,
    owner: &Owner,
    after: i64,
    limit: i64,
) -> Result<Vec<AuditEntry>> {
    let select = DynamicStatement::from(SELECT)
        .append(" FROM audit_log WHERE company_id = ")
        .bind(owner)
        .append(" AND number > ")
        .bind(after)
        .append(" ORDER BY number LIMIT ")
        .bind(limit);
    tx.dynamic(&select).all().await
}

pub async fn find_end(tx: &mut Tx, owner: &Owner) -> Result<ChainEnd> {
    let found = tx
        .sql("SELECT number, hash FROM audit_chains WHERE company_id = $1")
        .params(params![owner.column()])
        .optional()
        .await?;
    Ok(found.unwrap_or_default())
}

/// Counts the entries without numbers.
pub async fn count_unnumbered(tx: &mut Tx, owner: &Owner) -> Result<i64> {
    tx.sql("SELECT COUNT(*) FROM audit_log WHERE company_id = $1 AND number IS NULL")
        .params(params![owner.column()])
        .value()
        .await
}
