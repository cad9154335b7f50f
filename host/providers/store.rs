//! The rows of provider accounts.

use crate::{
    clock::Timestamp,
    store::{FromRow, Result, Tx},
};

#[derive(Clone, Debug, FromRow)]
pub struct Account {
    pub company_id: String,
    pub provider: String,
    /// Opaque and unguessable.
    pub id: String,
    /// Sealed JSON object of texts.
    pub credentials: Option<String>,
    pub active: bool,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

pub async fn find(tx: &mut Tx, company_id: &str, provider: &str) -> Result<Option<Account>> {
    tx.sql("SELECT * FROM provider_accounts WHERE company_id = $1 AND provider = $2")
        .bind(company_id)
        .bind(provider)
        .optional()
        .await
}

pub async fn by_id(tx: &mut Tx, id: &str) -> Result<Option<Account>> {
    tx.sql("SELECT * FROM provider_accounts WHERE id = $1").bind(id).optional().await
}

pub async fn list(tx: &mut Tx, company_id: &str) -> Result<Vec<Account>> {
    tx.sql("SELECT * FROM provider_accounts WHERE company_id = $1 ORDER BY provider")
        .bind(company_id)
        .all()
        .await
}

/// Writes an account; one that exists keeps its id.
pub async fn upsert(tx: &mut Tx, account: &Account) -> Result<Account> {
    tx.sql(
        "INSERT INTO provider_accounts (company_id, provider, id, credentials, active, created_at, updated_at)
         VALUES ($1, $2, $3, $4, $5, $6, $6)
         ON CONFLICT (company_id, provider) DO UPDATE SET
             credentials = excluded.credentials, active = excluded.active, updated_at = excluded.updated_at
         RETURNING *",
    )
    .bind(&account.company_id)
    .bind(&account.provider)
    .bind(&account.id)
    .bind(&account.credentials)
    .bind(account.active)
    .bind(account.updated_at)
    .one()
    .await
}
