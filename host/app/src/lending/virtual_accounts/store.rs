//! The rows of virtual accounts.

use crate::{
    customers::{SELECT_WITH_USER_ID, UserKey},
    lending::loans::LoanId,
    state::storage::*,
    tenants::providers::AccountId,
};
use tollhouse_plugins::{AccountName, VirtualAccount as OpenedAccount};

text_types! {
    /// The id of a virtual account.
    VirtualAccountId;
}

#[derive(Clone, Debug, Default, FromRow)]
pub struct VirtualAccount {
    pub company_id: CompanyId,
    pub id: VirtualAccountId,
    /// The internal id of the user.
    pub user_key: UserKey,
    /// The user's current `user_id`.
    #[sqlx(rename = "present_user_id")]
    pub user_id: String,
    pub loan_id: Option<LoanId>,
    pub payment_service: String,
    pub account_id: AccountId,
    /// The reference of the account at the provider.
    pub account_ref: String,
    pub provider_id: String,
    pub currency: Currency,
    /// Empty until the provider has confirmed that it opened the account.
    pub account_number: String,
    /// The name of the bank.
    pub bank: String,
    pub holder: String,
    pub closed_at: Option<Timestamp>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

/// Begins a query of a company's accounts.
fn of_company(company_id: &CompanyId) -> DynamicStatement {
    DynamicStatement::from(SELECT_WITH_USER_ID)
        .append(" FROM virtual_accounts t WHERE company_id = ")
        .bind(company_id)
}

/// Begins a query of a company's accounts that are not closed.
fn open(company_id: &CompanyId) -> DynamicStatement {
    of_company(company_id).append(" AND closed_at IS NULL")
}

/// Inserts an account, unless the payer has an open one for the same purpose.
pub async fn insert(tx: &mut Tx, new: &VirtualAccount) -> Result<()> {
    tx.sql(
        "INSERT INTO virtual_accounts (company_id, id, user_key, user_id, loan_id,
             payment_service, account_id, account_ref, provider_id, currency, account_number,
             bank, holder, created_at, updated_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, '', $9, '', '', '', $10, $10)
         ON CONFLICT DO NOTHING",
    )
    .params(params![
        &new.company_id, &new.id, &new.user_key, &new.user_id, &new.loan_id, &new.payment_service,
        &new.account_id, &new.account_ref, &new.currency, new.created_at
    ])
    .execute()
    .await
}

/// Returns the open account of the same payer and purpose.
pub async fn find_like(tx: &mut Tx, new: &VirtualAccount) -> Result<Option<VirtualAccount>> {
    let sql = open(&new.company_id)
        .append(" AND user_key = ")
        .bind(&new.user_key)
        .append(" AND account_id = ")
        .bind(&new.account_id)
        .append(" AND currency = ")
        .bind(&new.currency)
        .append(" AND COALESCE(loan_id, '') = ")
        .bind(new.loan_id.as_deref().unwrap_or_default());
    tx.dynamic(&sql).optional().await
}

/// Records the account that the provider has opened.
pub async fn set_opened(
    tx: &mut Tx,
    account: &VirtualAccount,
    opened: &OpenedAccount,
    now: Timestamp,
) -> Result<()> {
    tx.defer(
        "UPDATE virtual_accounts SET account_number = $3, bank = $4, holder = $5,
             provider_id = $6, updated_at = $7
         WHERE company_id = $1 AND id = $2",
    )
    .params(params![
        &account.company_id, &account.id, &opened.account_number, &opened.bank, &opened.holder,
        &opened.provider_id, now
    ])
    .require_one()
    .await
}

/// Hides an account. Returns `false` if it is hidden already.
pub async fn set_closed(tx: &mut Tx, account: &VirtualAccount, now: Timestamp) -> Result<bool> {
    tx.sql(
        "UPDATE virtual_accounts SET closed_at = $3, updated_at = $3
         WHERE company_id = $1 AND id = $2 AND closed_at IS NULL",
    )
    .params(params![&account.company_id, &account.id, now])
    .affects_one()
    .await
}

const CONFIRMED: &str = " AND account_number <> ''";

/// Finds an open account that the provider has confirmed.
pub async fn find(
    tx: &mut Tx,
    company_id: &CompanyId,
    id: &VirtualAccountId,
) -> Result<Option<VirtualAccount>> {
    let sql = open(company_id).append(CONFIRMED).append(" AND id = ").bind(id);
    tx.dynamic(&sql).optional().await
}

/// Returns the open, confirmed accounts of a user, oldest first.
pub async fn list_for_user(
    tx: &mut Tx,
    company_id: &CompanyId,
    user_key: &UserKey,
) -> Result<Vec<VirtualAccount>> {
    let sql = open(company_id).append(CONFIRMED).append(" AND user_key = ").bind(user_key);
    tx.dynamic(&sql.append(" ORDER BY created_at, id")).all().await
}

/// Finds an account, open or closed.
pub async fn find_any(
    tx: &mut Tx,
    company_id: &CompanyId,
    id: &str,
) -> Result<Option<VirtualAccount>> {
    let sql = of_company(company_id).append(" AND id = ").bind(id);
    tx.dynamic(&sql).optional().await
}

/// Returns whether virtual accounts were opened at a provider account.
pub async fn is_any_at(tx: &mut Tx, account_id: &str) -> Result<bool> {
    let found: Option<String> = tx
        .sql("SELECT id FROM virtual_accounts WHERE account_id = $1 LIMIT 1")
        .params(params![account_id])
        .optional_value()
        .await?;
    Ok(found.is_some())
}

/// Finds the account of a transfer: the open one, else the one that was closed last, because
/// providers may reassign numbers. `None` if several open accounts have the name.
pub async fn find_at(
    tx: &mut Tx,
    account_id: &AccountId,
    named: &AccountName,
) -> Result<Option<VirtualAccount>> {
    let (column, name) = match named {
        AccountName::Reference(name) => (" AND account_ref = ", name),
        AccountName::ProviderId(name) => (" AND provider_id = ", name),
        AccountName::Number(name) => (" AND account_number = ", name),
    };
    let sql = DynamicStatement::from(SELECT_WITH_USER_ID)
        .append(" FROM virtual_accounts t WHERE account_id = ")
        .bind(account_id)
        .append(column)
        .bind(name)
        .append(" ORDER BY closed_at IS NOT NULL, closed_at DESC LIMIT 2");
    let found: Vec<VirtualAccount> = tx.dynamic(&sql).all().await?;
    let is_ambiguous = found.len() == 2 && found.iter().all(|account| account.closed_at.is_none());
    Ok(found.into_iter().next().filter(|_| !is_ambiguous))
}
