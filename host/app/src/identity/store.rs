//! Storage of UID records and of the switches of identity types.

use super::{Method, seal_context};
use crate::{customers::UserKey, state::storage::*};

#[derive(Clone, Debug, FromRow)]
pub struct Uid {
    pub company_id: CompanyId,
    pub id: String,
    /// Keyed digest of company, user, type and identifier.
    pub lookup: String,
    /// Internal id of the linked user.
    pub user_key: Option<UserKey>,
    pub user_id: Option<String>,
    /// Name of the identity type, for example `nigeria.bvn`.
    pub identity: String,
    /// Sealed JSON.
    pub record: String,
    pub verified_at: Option<Timestamp>,
    pub verified_by: Json<Vec<Method>>,
    pub expires_at: Timestamp,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

pub const SEALED: [SealedColumn; 1] = [sealed_column!(uids(company_id, id).record, seal_context)];

/// Returns the record with one of these digests and locks its row until the transaction ends.
pub async fn lock_by_lookup(
    tx: &mut Tx,
    company_id: &CompanyId,
    lookups: &[String],
) -> Result<Option<Uid>> {
    let sql = DynamicStatement::from("SELECT * FROM uids WHERE company_id = ")
        .bind(company_id)
        .append(" AND lookup")
        .append_in(lookups)
        .append(" ORDER BY created_at DESC LIMIT 1 FOR UPDATE");
    Ok(tx.dynamic(&sql).all().await?.pop())
}

/// Inserts a record; `false` if a concurrent lookup inserted it first.
pub async fn insert(tx: &mut Tx, uid: &Uid) -> Result<bool> {
    tx.sql(
        "INSERT INTO uids (company_id, id, lookup, user_key, user_id, identity, record,
             verified_at, verified_by, expires_at, created_at, updated_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
         ON CONFLICT (company_id, lookup) DO NOTHING",
    )
    .params(params![
        &uid.company_id, &uid.id, &uid.lookup, &uid.user_key, &uid.user_id, &uid.identity,
        &uid.record, uid.verified_at, &uid.verified_by, uid.expires_at, uid.created_at,
        uid.updated_at
    ])
    .affects_one()
    .await
}

pub async fn update(tx: &mut Tx, uid: &Uid) -> Result<()> {
    tx.sql(
        "UPDATE uids SET user_id = $3, record = $4, verified_at = $5, verified_by = $6,
             updated_at = $7
         WHERE company_id = $1 AND id = $2",
    )
    .params(params![
        &uid.company_id, &uid.id, &uid.user_id, &uid.record, uid.verified_at, &uid.verified_by,
        uid.updated_at
    ])
    .execute()
    .await
}

pub async fn delete(tx: &mut Tx, uid: &Uid) -> Result<()> {
    tx.sql("DELETE FROM uids WHERE company_id = $1 AND id = $2")
        .params(params![&uid.company_id, &uid.id])
        .execute()
        .await
}

/// Returns a record unless it has expired.
pub async fn find(
    tx: &mut Tx,
    company_id: &CompanyId,
    id: &str,
    now: Timestamp,
) -> Result<Option<Uid>> {
    tx.sql("SELECT * FROM uids WHERE company_id = $1 AND id = $2 AND expires_at > $3")
        .params(params![company_id, id, now])
        .optional()
        .await
}

/// Like [`find`], but locks the row until the transaction ends.
pub async fn lock(
    tx: &mut Tx,
    company_id: &CompanyId,
    id: &str,
    now: Timestamp,
) -> Result<Option<Uid>> {
    tx.sql("SELECT * FROM uids WHERE company_id = $1 AND id = $2 AND expires_at > $3 FOR UPDATE")
        .params(params![company_id, id, now])
        .optional()
        .await
}

/// Maximum number of listed records, which contain photos.
const MAX_LISTED: i64 = 100;

/// Returns the newest unexpired records of a user.
pub async fn list_for_user(
    tx: &mut Tx,
    company_id: &CompanyId,
    user_key: &UserKey,
    now: Timestamp,
) -> Result<Vec<Uid>> {
    tx.sql(
        "SELECT * FROM uids WHERE company_id = $1 AND user_key = $2 AND expires_at > $3
         ORDER BY created_at DESC, id DESC LIMIT $4",
    )
    .params(params![company_id, user_key, now, MAX_LISTED])
    .all()
    .await
}

/// Deletes up to `limit` expired records of all companies and returns their number.
pub async fn sweep(tx: &mut Tx, now: Timestamp, limit: i64) -> Result<u64> {
    tx.sql(
        "DELETE FROM uids WHERE (company_id, id) IN (
             SELECT company_id, id FROM uids WHERE expires_at <= $1
             ORDER BY expires_at LIMIT $2 FOR UPDATE SKIP LOCKED)",
    )
    .params(params![now, limit])
    .run()
    .await
}

/// Returns the types disabled for the company or for all companies.
pub async fn list_disabled(tx: &mut Tx, owner: &Owner) -> Result<Vec<String>> {
    tx.sql("SELECT identity FROM identity_switches WHERE company_id IN ($1, $2) AND NOT active")
        .params(params![owner.column(), Owner::Service.column()])
        .values()
        .await
}

pub async fn set_active(
    tx: &mut Tx,
    owner: &Owner,
    identity: &str,
    active: bool,
    now: Timestamp,
) -> Result<()> {
    tx.sql(
        "INSERT INTO identity_switches (company_id, identity, active, updated_at)
         VALUES ($1, $2, $3, $4)
         ON CONFLICT (company_id, identity)
         DO UPDATE SET active = excluded.active, updated_at = excluded.updated_at",
    )
    .params(params![owner.column(), identity, active, now])
    .execute()
    .await
}

/// Deletes the recorded reads of an operator up to a time.
pub async fn forget_reads(tx: &mut Tx, operator: &str, until: Timestamp) -> Result<()> {
    tx.sql("DELETE FROM identity_reads WHERE operator_id = $1 AND read_at <= $2")
        .params(params![operator, until])
        .execute()
        .await
}

/// Records that an operator reads the identity records of a user.
pub async fn record_read(
    tx: &mut Tx,
    operator: &str,
    company_id: &CompanyId,
    user: &UserKey,
    now: Timestamp,
) -> Result<()> {
    tx.sql(
        "INSERT INTO identity_reads (operator_id, company_id, user_key, read_at)
         VALUES ($1, $2, $3, $4)
         ON CONFLICT (operator_id, company_id, user_key) DO UPDATE SET read_at = $4",
    )
    .params(params![operator, company_id, user, now])
    .execute()
    .await
}

/// Returns the number of users in the recorded reads of an operator.
pub async fn count_reads(tx: &mut Tx, operator: &str) -> Result<i64> {
    tx.sql("SELECT COUNT(*) FROM identity_reads WHERE operator_id = $1")
        .bind(operator)
        .value()
        .await
}
