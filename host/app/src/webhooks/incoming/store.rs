//! The rows of provider webhooks and of the reference directory.

use crate::{
    state::storage::*,
    tenants::providers::{Account, AccountId},
};

/// The owner of a reference: company, kind of record (for example `payment`), and its id.
pub type ReferenceOwner<'r> = (&'r str, &'r str, &'r str);

/// Adds a reference to the directory, with its charge if it names one. Returns `false` if another
/// record of the account has it.
pub async fn reserve(
    tx: &mut Tx,
    account_id: &AccountId,
    service_ref: &str,
    (company_id, subject, subject_id): ReferenceOwner<'_>,
    charge_id: Option<&str>,
    now: Timestamp,
) -> Result<bool> {
    tx.sql(
        "INSERT INTO service_refs (account_id, service_ref, company_id, subject, subject_id,
             charge_id, created_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7)
         ON CONFLICT (account_id, service_ref) DO UPDATE SET charge_id = excluded.charge_id
         WHERE service_refs.company_id = excluded.company_id
             AND service_refs.subject = excluded.subject
                 AND service_refs.subject_id = excluded.subject_id",
    )
    .params(params![account_id, service_ref, company_id, subject, subject_id, charge_id, now])
    .affects_one()
    .await
}

/// Reserves a reference for a new record. Fails as a duplicate if it is taken.
pub async fn insert_reference(
    tx: &mut Tx,
    account_id: &AccountId,
    service_ref: &str,
    (company_id, subject, subject_id): ReferenceOwner<'_>,
    charge_id: Option<&str>,
    now: Timestamp,
) -> Result<()> {
    tx.defer(
        "INSERT INTO service_refs (account_id, service_ref, company_id, subject, subject_id,
             charge_id, created_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7)",
    )
    .params(params![account_id, service_ref, company_id, subject, subject_id, charge_id, now])
    .execute()
    .await
}

/// Adds the reference that the provider returned, if it is not `service_ref`. Returns `false` if
/// another record has it. Webhooks may name either; only the returned one is verified from now on.
pub async fn replace(
    tx: &mut Tx,
    account_id: &AccountId,
    service_ref: &str,
    by: &str,
    owner: ReferenceOwner<'_>,
    charge_id: Option<&str>,
    now: Timestamp,
) -> Result<bool> {
    if by == service_ref {
        return Ok(true);
    }
    if !reserve(tx, account_id, by, owner, charge_id, now).await? {
        return Ok(false);
    }
    tx.sql(
        "UPDATE service_refs SET replaced_by = $4
         WHERE account_id = $1 AND service_ref = $2 AND company_id = $3",
    )
    .params(params![account_id, service_ref, owner.0, by])
    .execute()
    .await?;
    Ok(true)
}

/// Removes a reference that the provider uses for another charge.
pub async fn release(tx: &mut Tx, account_id: &AccountId, service_ref: &str) -> Result<()> {
    tx.sql("DELETE FROM service_refs WHERE account_id = $1 AND service_ref = $2")
        .params(params![account_id, service_ref])
        .execute()
        .await
}

/// Returns the owner of a reference, and its charge. Mandates have no charge, nor do records that a
/// host of the previous version wrote.
pub async fn owner_of(
    tx: &mut Tx,
    account_id: &AccountId,
    service_ref: &str,
) -> Result<Option<(CompanyId, String, String, Option<String>)>> {
    tx.sql(
        "SELECT company_id, subject, subject_id, charge_id FROM service_refs
         WHERE account_id = $1 AND service_ref = $2",
    )
    .params(params![account_id, service_ref])
    .optional()
    .await
}

/// Returns a record's references at the provider with their accounts, without replaced ones.
pub async fn list_references(
    tx: &mut Tx,
    (company_id, subject, subject_id): ReferenceOwner<'_>,
) -> Result<Vec<(AccountId, String)>> {
    tx.sql(
        "SELECT account_id, service_ref FROM service_refs
         WHERE company_id = $1 AND subject = $2 AND subject_id = $3 AND replaced_by IS NULL
         ORDER BY created_at, service_ref",
    )
    .params(params![company_id, subject, subject_id])
    .all()
    .await
}

/// Assigns a reference, and the one that it replaced, to a charge.
pub async fn assign_charge(
    tx: &mut Tx,
    account_id: &AccountId,
    service_ref: &str,
    charge_id: &str,
) -> Result<()> {
    tx.sql(
        "UPDATE service_refs SET charge_id = $3
         WHERE account_id = $1 AND (service_ref = $2 OR replaced_by = $2)",
    )
    .params(params![account_id, service_ref, charge_id])
    .execute()
    .await
}

/// Stores a webhook for a provider account, or counts another copy of it.
pub async fn insert_or_count(
    tx: &mut Tx,
    account: &Account,
    digest: &str,
    about: Value,
    now: Timestamp,
) -> Result<()> {
    tx.defer(
        "INSERT INTO notifications (account_id, digest, company_id, provider, about, copies,
             received_at)
         VALUES ($1, $2, $3, $4, $5, 1, $6)
         ON CONFLICT (account_id, digest) DO UPDATE SET copies = notifications.copies + 1",
    )
    .params(params![
        &account.id,
        digest,
        Owner::from(&account.owner).column(),
        &account.provider,
        Json(about),
        now
    ])
    .execute()
    .await
}

/// A received webhook about a record.
#[derive(Debug, FromRow)]
pub struct ReceivedWebhook {
    /// What each of its notifications is about: subject, event and references.
    pub about: Json<Vec<Value>>,
    /// Number of times that it was received.
    pub copies: i64,
    /// The first time.
    pub received_at: Timestamp,
}

/// Returns the webhooks whose first notification names a reference of a record, oldest first.
/// Includes those that name a replaced reference.
pub async fn list_webhooks(
    tx: &mut Tx,
    (company_id, subject, subject_id): ReferenceOwner<'_>,
) -> Result<Vec<ReceivedWebhook>> {
    tx.sql(
        "SELECT n.about, n.copies, n.received_at
         FROM service_refs s
         JOIN notifications n
             ON n.account_id = s.account_id AND n.about -> 0 ->> 'service_ref' = s.service_ref
         WHERE s.company_id = $1 AND s.subject = $2 AND s.subject_id = $3
         ORDER BY n.received_at, n.digest",
    )
    .params(params![company_id, subject, subject_id])
    .all()
    .await
}
