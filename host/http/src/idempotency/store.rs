//! The rows of idempotency keys.

use super::context;
use tollhouse_platform::{
    clock::Timestamp,
    crypto::seal::{SealedColumn, sealed_column},
    store::{FromRow, Params, Result, Tx, params},
    values::id::Owner,
};

/// A request with an idempotency key. Its texts are sealed, except the ids of run and lease.
#[derive(Clone, Debug, FromRow)]
pub struct Row {
    /// Shared by all runs of the request.
    pub run_id: String,
    /// Digest of the request.
    pub content: String,
    /// Lease of the current run.
    pub lease: Option<String>,
    pub lease_until: Timestamp,
    pub answer: Option<String>,
    pub expires_at: Timestamp,
}

impl Row {
    /// Returns the parameters `$1` to `$8` of [`insert`] and [`update`].
    fn params<'p>(&'p self, owner: &'p Owner, id: &'p str) -> impl Params<'p> {
        params![
            owner.column(),
            id,
            &self.run_id,
            &self.content,
            &self.lease,
            self.lease_until,
            &self.answer,
            self.expires_at
        ]
    }
}

pub const SEALED: [SealedColumn; 2] = [
    sealed_column!(idempotency_keys(company_id, id).content, |company_id, id| {
        context(company_id, id, "content")
    }),
    sealed_column!(idempotency_keys(company_id, id).answer, |company_id, id| {
        context(company_id, id, "answer")
    }),
];

/// Returns the row, locked until the transaction ends.
pub async fn lock(tx: &mut Tx, owner: &Owner, id: &str) -> Result<Option<Row>> {
    tx.sql(
        "SELECT run_id, content, lease, lease_until, answer, expires_at FROM idempotency_keys
         WHERE company_id = $1 AND id = $2 FOR UPDATE",
    )
    .params(params![owner.column(), id])
    .optional()
    .await
}

/// Returns whether the key was new.
pub async fn insert(tx: &mut Tx, owner: &Owner, id: &str, row: &Row) -> Result<bool> {
    tx.sql(
        "INSERT INTO idempotency_keys (company_id, id, run_id, content, lease, lease_until,
             answer, expires_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT (company_id, id) DO NOTHING",
    )
    .params(row.params(owner, id))
    .affects_one()
    .await
}

pub async fn update(tx: &mut Tx, owner: &Owner, id: &str, row: &Row) -> Result<()> {
    tx.sql(
        "UPDATE idempotency_keys SET run_id = $3, content = $4, lease = $5, lease_until = $6,
             answer = $7, expires_at = $8
         WHERE company_id = $1 AND id = $2",
    )
    .params(row.params(owner, id))
    .execute()
    .await
}

/// Deletes the row. No effect if its lease was lost.
pub async fn delete(tx: &mut Tx, owner: &Owner, id: &str, lease: &str) -> Result<()> {
    tx.sql("DELETE FROM idempotency_keys WHERE company_id = $1 AND id = $2 AND lease = $3")
        .params(params![owner.column(), id, lease])
        .execute()
        .await
}

/// Ends a lease that is still held, with or without a response. Keeps the row, at most `until`.
pub async fn complete(
    tx: &mut Tx,
    owner: &Owner,
    id: &str,
    lease: &str,
    response: Option<&str>,
    [now, until]: [Timestamp; 2],
) -> Result<()> {
    tx.sql(
        "UPDATE idempotency_keys SET lease = NULL, answer = $4, lease_until = $5,
             expires_at = CASE WHEN expires_at > $6 THEN $6 ELSE expires_at END
         WHERE company_id = $1 AND id = $2 AND lease = $3",
    )
    .params(params![owner.column(), id, lease, response, now, until])
    .execute()
    .await
}

/// Removes up to `limit` expired rows of all companies. Returns their number.
pub async fn sweep(tx: &mut Tx, now: Timestamp, limit: i64) -> Result<u64> {
    tx.sql(
        "DELETE FROM idempotency_keys WHERE (company_id, id) IN (
             SELECT company_id, id FROM idempotency_keys WHERE expires_at <= $1
             ORDER BY expires_at LIMIT $2 FOR UPDATE SKIP LOCKED)",
    )
    .params(params![now, limit])
    .run()
    .await
}
