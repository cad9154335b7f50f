//! The rows of provider accounts.

use super::seal_context;
use crate::{
    clock::Timestamp,
    seal::{SealedColumn, sealed_column},
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

/// What of an account is sealed.
pub const SEALED: [SealedColumn; 1] =
    [sealed_column!(provider_accounts(company_id, id).credentials, |_, id| seal_context(id))];

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

/// The account of `new`'s company and provider, which is `new` if there was none, locked until the transaction ends.
pub async fn lock(tx: &mut Tx, new: &Account) -> Result<Account> {
    tx.sql(
        "INSERT INTO provider_accounts (company_id, provider, id, credentials, active, created_at, updated_at)
         VALUES ($1, $2, $3, $4, $5, $6, $6) ON CONFLICT (company_id, provider) DO NOTHING",
    )
    .bind(&new.company_id)
    .bind(&new.provider)
    .bind(&new.id)
    .bind(&new.credentials)
    .bind(new.active)
    .bind(new.created_at)
    .run()
    .await?;
    tx.sql("SELECT * FROM provider_accounts WHERE company_id = $1 AND provider = $2 FOR UPDATE")
        .bind(&new.company_id)
        .bind(&new.provider)
        .one()
        .await
}

/// Writes what of an account can change.
pub async fn update(tx: &mut Tx, account: &Account) -> Result<()> {
    tx.sql(
        "UPDATE provider_accounts SET credentials = $3, active = $4, updated_at = $5
         WHERE company_id = $1 AND provider = $2",
    )
    .bind(&account.company_id)
    .bind(&account.provider)
    .bind(&account.credentials)
    .bind(account.active)
    .bind(account.updated_at)
    .run()
    .await?;
    Ok(())
}
