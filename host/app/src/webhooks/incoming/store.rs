//! The rows of provider webhooks and of the reference directory.

use serde_json::Value;

use crate::tenants::providers::AccountId;
use tollhouse_platform::{
    clock::Timestamp,
    store::{FromRow, Json, Result, Tx, params},
    values::id::{CompanyId, Owner},
};

/// The owner of a reference.
#[derive(Clone, Debug, FromRow)]
pub struct ReferenceOwner {
    pub company_id: CompanyId,
    /// The kind of record, for example `payment`.
    pub subject: String,
    pub subject_id: String,
}

/// Adds a reference to the directory. Returns `false` if another record of the account has it.
pub async fn reserve(
    tx: &mut Tx,
    account_id: &AccountId,
    service_ref: &str,
    belongs: &ReferenceOwner,
    now: Timestamp,
) -> Result<bool> {
    let owned = tx
        .sql(
            "INSERT INTO service_refs (account_id, service_ref, company_id, subject, subject_id,
                 created_at)
             VALUES ($1, $2, $3, $4, $5, $6)
             ON CONFLICT (account_id, service_ref) DO UPDATE SET subject_id = excluded.subject_id
             WHERE service_refs.company_id = excluded.company_id
                 AND service_refs.subject = excluded.subject
                     AND service_refs.subject_id = excluded.subject_id",
        )
        .params(params![
            account_id, service_ref, &belongs.company_id, &belongs.subject, &belongs.subject_id,
            now
        ])
        .run()
        .await?;
    Ok(owned == 1)
}

/// Adds the reference that the provider returned instead of `service_ref`. Returns `false` if
/// another record has it. Webhooks may name either; only the returned one is verified from now on.
pub async fn replace(
    tx: &mut Tx,
    account_id: &AccountId,
    service_ref: &str,
    by: &str,
    belongs: &ReferenceOwner,
    now: Timestamp,
) -> Result<bool> {
    if !reserve(tx, account_id, by, belongs, now).await? {
        return Ok(false);
    }
    tx.sql(
        "UPDATE service_refs SET replaced_by = $4
         WHERE account_id = $1 AND service_ref = $2 AND company_id = $3",
    )
    .params(params![account_id, service_ref, &belongs.company_id, by])
    .run()
    .await?;
    Ok(true)
}

/// Removes a reference that the provider uses for another charge.
pub async fn release(tx: &mut Tx, account_id: &AccountId, service_ref: &str) -> Result<()> {
    tx.sql("DELETE FROM service_refs WHERE account_id = $1 AND service_ref = $2")
        .params(params![account_id, service_ref])
        .run()
        .await?;
    Ok(())
}

pub async fn owner_of(
    tx: &mut Tx,
    account_id: &AccountId,
    service_ref: &str,
) -> Result<Option<ReferenceOwner>> {
    tx.sql(
        "SELECT company_id, subject, subject_id FROM service_refs
         WHERE account_id = $1 AND service_ref = $2",
    )
    .params(params![account_id, service_ref])
    .optional()
    .await
}

/// Returns a record's references at the provider, without replaced ones.
pub async fn list_references(
    tx: &mut Tx,
    company_id: &CompanyId,
    subject: &str,
    subject_id: &str,
) -> Result<Vec<String>> {
    let rows: Vec<(String,)> = tx
        .sql(
            "SELECT service_ref FROM service_refs
             WHERE company_id = $1 AND subject = $2 AND subject_id = $3 AND replaced_by IS NULL
             ORDER BY created_at, service_ref",
        )
        .params(params![company_id, subject, subject_id])
        .all()
        .await?;
    Ok(rows.into_iter().map(|(reference,)| reference).collect())
}

/// The stored fields of a provider webhook.
pub struct ReceivedWebhook<'n> {
    pub account_id: &'n AccountId,
    pub owner: &'n Owner,
    pub provider: &'n str,
    pub digest: &'n str,
    pub about: Value,
}

/// Stores a provider webhook, or counts another copy of it.
pub async fn insert_or_count(
    tx: &mut Tx,
    received: ReceivedWebhook<'_>,
    now: Timestamp,
) -> Result<()> {
    tx.sql(
        "INSERT INTO notifications (account_id, digest, company_id, provider, about, copies,
             received_at)
         VALUES ($1, $2, $3, $4, $5, 1, $6)
         ON CONFLICT (account_id, digest) DO UPDATE SET copies = notifications.copies + 1",
    )
    .params(params![
        received.account_id,
        received.digest,
        received.owner,
        received.provider,
        Json(received.about),
        now
    ])
    .run()
    .await?;
    Ok(())
}
