//! The rows of lists, listed transactions and settlements.

use super::{
    Comparison, TransactionKind,
    days::{Closed, Total},
};
use crate::{
    money::{
        charges::{Charge, ChargeId},
        prelude::AccountId,
    },
    state::storage::*,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq, EnumString, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Step {
    Transactions,
    Settlements,
    /// The payments of settlements.
    Contents,
    Check,
    Done,
}

text_columns!(Step);

/// The progress of the list of an account.
#[derive(Clone, Debug, FromRow)]
pub struct Listing {
    pub account_id: AccountId,
    /// The end of the first list: what was taken before may be missing.
    pub begun_at: Timestamp,
    /// The period of the current list.
    pub since: Timestamp,
    pub until: Timestamp,
    pub step: Step,
    /// The plugin's cursor in this step.
    pub next_page: Option<String>,
    /// When the step `Check` may begin.
    pub check_at: Timestamp,
    /// The end of the last complete list.
    pub listed_at: Option<Timestamp>,
}

pub async fn find_listing(tx: &mut Tx, account_id: &AccountId) -> Result<Option<Listing>> {
    tx.sql("SELECT * FROM account_listings WHERE account_id = $1").bind(account_id).optional().await
}

/// Locks a listing and returns it.
pub async fn lock_listing(tx: &mut Tx, account_id: &AccountId) -> Result<Option<Listing>> {
    tx.sql("SELECT * FROM account_listings WHERE account_id = $1 FOR UPDATE")
        .bind(account_id)
        .optional()
        .await
}

pub async fn save_listing(tx: &mut Tx, listing: &Listing) -> Result<()> {
    tx.sql(
        "INSERT INTO account_listings (account_id, begun_at, since, until, step, next_page,
             check_at, listed_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
         ON CONFLICT (account_id) DO UPDATE SET since = $3, until = $4, step = $5, next_page = $6,
             check_at = $7, listed_at = $8",
    )
    .params(params![
        &listing.account_id, listing.begun_at, listing.since, listing.until, listing.step,
        &listing.next_page, listing.check_at, listing.listed_at
    ])
    .execute()
    .await
}

/// A transaction in a provider's list, and the result of its comparison.
#[derive(Clone, Debug, PartialEq, FromRow)]
pub struct ProviderTransaction {
    pub account_id: AccountId,
    pub kind: TransactionKind,
    pub provider_id: String,
    pub service_ref: String,
    /// The provider's id of the payment.
    pub transaction_id: String,
    #[sqlx(rename = "amount_minor")]
    pub amount: Minor,
    #[sqlx(rename = "fees_minor")]
    pub fees: Option<Minor>,
    pub currency: Currency,
    pub at: Timestamp,
    pub settlement_id: Option<String>,
    /// Empty without a charge.
    pub company_id: CompanyId,
    pub charge_id: Option<ChargeId>,
    pub result: Comparison,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

pub async fn find_transaction(
    tx: &mut Tx,
    account_id: &AccountId,
    kind: TransactionKind,
    provider_id: &str,
) -> Result<Option<ProviderTransaction>> {
    tx.sql(
        "SELECT * FROM provider_transactions
         WHERE account_id = $1 AND kind = $2 AND provider_id = $3",
    )
    .params(params![account_id, kind, provider_id])
    .optional()
    .await
}

pub async fn save_transaction(tx: &mut Tx, transaction: &ProviderTransaction) -> Result<()> {
    tx.sql(
        "INSERT INTO provider_transactions (account_id, kind, provider_id, service_ref,
             amount_minor, fees_minor, currency, at, settlement_id, company_id, charge_id, result,
             created_at, updated_at, transaction_id)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)
         ON CONFLICT (account_id, kind, provider_id) DO UPDATE SET service_ref = $4,
             amount_minor = $5, fees_minor = $6, currency = $7, at = $8, settlement_id = $9,
             company_id = $10, charge_id = $11, result = $12, updated_at = $14,
             transaction_id = $15",
    )
    .params(params![
        &transaction.account_id, transaction.kind, &transaction.provider_id,
        &transaction.service_ref, transaction.amount, transaction.fees, &transaction.currency,
        transaction.at, &transaction.settlement_id, &transaction.company_id,
        &transaction.charge_id, transaction.result, transaction.created_at, transaction.updated_at,
        &transaction.transaction_id
    ])
    .execute()
    .await
}

/// Returns up to `limit` transactions after `after` that did not match.
pub async fn list_differing(
    tx: &mut Tx,
    account_id: &AccountId,
    (kind, provider_id): (&str, &str),
    limit: i64,
) -> Result<Vec<ProviderTransaction>> {
    tx.sql(
        "SELECT * FROM provider_transactions
         WHERE account_id = $1 AND result <> 'matched' AND (kind, provider_id) > ($2, $3)
         ORDER BY kind, provider_id LIMIT $4",
    )
    .params(params![account_id, kind, provider_id, limit])
    .all()
    .await
}

/// Returns whether the account's list has the payment of a charge.
pub async fn is_charge_listed(
    tx: &mut Tx,
    account_id: &AccountId,
    company: &Owner,
    charge_id: &str,
) -> Result<bool> {
    let found: Option<String> = tx
        .sql(
            "SELECT provider_id FROM provider_transactions
             WHERE company_id = $1 AND charge_id = $2 AND account_id = $3 AND kind = 'payment'
             LIMIT 1",
        )
        .params(params![company.column(), charge_id, account_id])
        .optional_value()
        .await?;
    Ok(found.is_some())
}

/// Returns the charge of a listed payment by the provider's id.
pub async fn charge_of_payment(
    tx: &mut Tx,
    account_id: &AccountId,
    transaction_id: &str,
) -> Result<Option<(CompanyId, String)>> {
    tx.sql(
        "SELECT company_id, charge_id FROM provider_transactions
         WHERE account_id = $1 AND kind = 'payment' AND provider_id = $2
             AND charge_id IS NOT NULL",
    )
    .params(params![account_id, transaction_id])
    .optional()
    .await
}

/// Returns the charge of a refund by the provider's id.
pub async fn charge_of_refund(
    tx: &mut Tx,
    account_id: &AccountId,
    provider_id: &str,
) -> Result<Option<(CompanyId, String)>> {
    tx.sql(
        "SELECT c.company_id, c.id FROM charge_refunds r
         JOIN charges c ON c.company_id = r.company_id AND c.id = r.charge_id
         WHERE r.provider_id = $2 AND c.account_id = $1 LIMIT 1",
    )
    .params(params![account_id, provider_id])
    .optional()
    .await
}

/// Returns the charge of a dispute by the provider's id.
pub async fn charge_of_dispute(
    tx: &mut Tx,
    account_id: &AccountId,
    provider_id: &str,
) -> Result<Option<(CompanyId, String)>> {
    tx.sql(
        "SELECT company_id, charge_id FROM disputes
         WHERE account_id = $1 AND provider_id = $2 LIMIT 1",
    )
    .params(params![account_id, provider_id])
    .optional()
    .await
}

/// Returns the charges that took money in a period, and whose payment the list lacks.
pub async fn list_unlisted_charges(
    tx: &mut Tx,
    account_id: &AccountId,
    (from, before): (Timestamp, Timestamp),
    limit: i64,
) -> Result<Vec<Charge>> {
    tx.sql(
        "SELECT c.* FROM charges c
         WHERE c.account_id = $1 AND c.taken_minor IS NOT NULL AND c.settled_at >= $2
             AND c.settled_at < $3 AND NOT EXISTS (
                 SELECT 1 FROM provider_transactions t
                 WHERE t.company_id = c.company_id AND t.charge_id = c.id
                     AND t.account_id = c.account_id AND t.kind = 'payment')
         ORDER BY c.settled_at, c.id LIMIT $4",
    )
    .params(params![account_id, from, before, limit])
    .all()
    .await
}

/// A refund that was made, with the charge's reference.
#[derive(Clone, Debug, FromRow)]
pub struct UnlistedRefund {
    pub company_id: CompanyId,
    pub charge_id: ChargeId,
    pub provider_id: String,
    #[sqlx(rename = "amount_minor")]
    pub amount: Minor,
    pub updated_at: Timestamp,
}

/// Returns the refunds that were made in a period, and that the list lacks.
pub async fn list_unlisted_refunds(
    tx: &mut Tx,
    account_id: &AccountId,
    (from, before): (Timestamp, Timestamp),
    limit: i64,
) -> Result<Vec<UnlistedRefund>> {
    tx.sql(
        "SELECT r.company_id, r.charge_id, r.provider_id, r.amount_minor, r.updated_at
         FROM charge_refunds r
         JOIN charges c ON c.company_id = r.company_id AND c.id = r.charge_id
         WHERE c.account_id = $1 AND r.state = 'done' AND r.provider_id <> ''
             AND r.updated_at >= $2 AND r.updated_at < $3 AND NOT EXISTS (
                 SELECT 1 FROM provider_transactions t
                 WHERE t.account_id = c.account_id AND t.kind = 'refund'
                     AND t.provider_id = r.provider_id)
         ORDER BY r.updated_at, r.id LIMIT $4",
    )
    .params(params![account_id, from, before, limit])
    .all()
    .await
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema, EnumString, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "SettlementState")]
pub enum SettlementState {
    /// Not paid out yet.
    Pending,
    Paid,
    Failed,
}

text_columns!(SettlementState);

/// A payout of a provider.
#[derive(Clone, Debug, FromRow, Serialize, JsonSchema)]
#[schemars(rename = "Settlement")]
pub struct Settlement {
    #[serde(skip)]
    pub account_id: AccountId,
    /// The provider's id.
    #[serde(rename = "id")]
    pub provider_id: String,
    pub state: SettlementState,
    /// What was paid out.
    #[sqlx(rename = "amount_minor")]
    pub amount: Minor,
    /// The amounts of its payments.
    #[sqlx(rename = "gross_minor")]
    pub gross: Minor,
    /// The fees of its payments.
    #[sqlx(rename = "fees_minor")]
    pub fees: Minor,
    /// Refunds, disputes and other deductions, as the provider states them.
    #[sqlx(rename = "deductions_minor")]
    pub deductions: Minor,
    pub currency: Currency,
    /// The date of the payout.
    pub at: Timestamp,
    /// `true`: its payments were listed since it was paid.
    #[serde(skip)]
    pub is_listed: bool,
    #[serde(skip)]
    pub created_at: Timestamp,
    #[serde(skip)]
    pub updated_at: Timestamp,
}

pub async fn find_settlement(
    tx: &mut Tx,
    account_id: &AccountId,
    provider_id: &str,
) -> Result<Option<Settlement>> {
    tx.sql("SELECT * FROM provider_settlements WHERE account_id = $1 AND provider_id = $2")
        .params(params![account_id, provider_id])
        .optional()
        .await
}

pub async fn save_settlement(tx: &mut Tx, settlement: &Settlement) -> Result<()> {
    tx.sql(
        "INSERT INTO provider_settlements (account_id, provider_id, state, amount_minor,
             gross_minor, fees_minor, deductions_minor, currency, at, is_listed, created_at,
             updated_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
         ON CONFLICT (account_id, provider_id) DO UPDATE SET state = $3, amount_minor = $4,
             gross_minor = $5, fees_minor = $6, deductions_minor = $7, currency = $8, at = $9,
             is_listed = $10, updated_at = $12",
    )
    .params(params![
        &settlement.account_id, &settlement.provider_id, settlement.state, settlement.amount,
        settlement.gross, settlement.fees, settlement.deductions, &settlement.currency,
        settlement.at, settlement.is_listed, settlement.created_at, settlement.updated_at
    ])
    .execute()
    .await
}

/// Returns the oldest paid settlement whose payments are to be listed.
pub async fn next_settlement(tx: &mut Tx, account_id: &AccountId) -> Result<Option<Settlement>> {
    tx.sql(
        "SELECT * FROM provider_settlements
         WHERE account_id = $1 AND state = 'paid' AND NOT is_listed
         ORDER BY at, provider_id LIMIT 1",
    )
    .bind(account_id)
    .optional()
    .await
}

/// The sums of the listed payments of a settlement.
#[derive(Clone, Copy, Debug, FromRow, PartialEq, Eq)]
pub struct SettledPayments {
    #[sqlx(rename = "gross_minor")]
    pub gross: Minor,
    #[sqlx(rename = "fees_minor")]
    pub fees: Minor,
}

pub async fn sum_settled(tx: &mut Tx, settlement: &Settlement) -> Result<SettledPayments> {
    tx.sql(
        "SELECT CAST(COALESCE(SUM(amount_minor), 0) AS BIGINT) AS gross_minor,
             CAST(COALESCE(SUM(fees_minor), 0) AS BIGINT) AS fees_minor
         FROM provider_transactions
         WHERE account_id = $1 AND settlement_id = $2 AND currency = $3 AND kind = 'payment'",
    )
    .params(params![&settlement.account_id, &settlement.provider_id, &settlement.currency])
    .one()
    .await
}

/// Returns the settlements of a period.
pub async fn list_settlements(
    tx: &mut Tx,
    account_id: &AccountId,
    (from, before): (Timestamp, Timestamp),
) -> Result<Vec<Settlement>> {
    tx.sql(
        "SELECT * FROM provider_settlements WHERE account_id = $1 AND at >= $2 AND at < $3
         ORDER BY at, provider_id",
    )
    .params(params![account_id, from, before])
    .all()
    .await
}

/// Returns the totals of the listed transactions of a period.
pub async fn totals(
    tx: &mut Tx,
    account_id: &AccountId,
    (from, before): (Timestamp, Timestamp),
) -> Result<Vec<Total>> {
    tx.sql(
        "SELECT kind, currency, COUNT(*) AS listed,
             CAST(SUM(CASE WHEN result = 'matched' THEN 1 ELSE 0 END) AS BIGINT) AS matched,
             CAST(SUM(amount_minor) AS BIGINT) AS amount_minor,
             CAST(SUM(COALESCE(fees_minor, 0)) AS BIGINT) AS fees_minor
         FROM provider_transactions WHERE account_id = $1 AND at >= $2 AND at < $3
         GROUP BY kind, currency ORDER BY kind, currency",
    )
    .params(params![account_id, from, before])
    .all()
    .await
}

/// The listed transactions of a day.
#[derive(Clone, Copy, Debug, FromRow)]
pub struct DayCount {
    pub day: Timestamp,
    pub listed: i64,
    pub matched: i64,
}

pub async fn count_by_day(
    tx: &mut Tx,
    account_id: &AccountId,
    (from, before): (Timestamp, Timestamp),
) -> Result<Vec<DayCount>> {
    tx.sql(
        "SELECT at / 86400000 * 86400000 AS day, COUNT(*) AS listed,
             CAST(SUM(CASE WHEN result = 'matched' THEN 1 ELSE 0 END) AS BIGINT) AS matched
         FROM provider_transactions WHERE account_id = $1 AND at >= $2 AND at < $3
         GROUP BY at / 86400000 * 86400000",
    )
    .params(params![account_id, from, before])
    .all()
    .await
}

pub async fn find_closed(
    tx: &mut Tx,
    account_id: &AccountId,
    day: Timestamp,
) -> Result<Option<Closed>> {
    tx.sql(
        "SELECT day, closed_at, closed_by, totals FROM closed_days
         WHERE account_id = $1 AND day = $2",
    )
    .params(params![account_id, day])
    .optional()
    .await
}

pub async fn list_closed(
    tx: &mut Tx,
    account_id: &AccountId,
    (from, before): (Timestamp, Timestamp),
) -> Result<Vec<Closed>> {
    tx.sql(
        "SELECT day, closed_at, closed_by, totals FROM closed_days
         WHERE account_id = $1 AND day >= $2 AND day < $3",
    )
    .params(params![account_id, from, before])
    .all()
    .await
}

pub async fn insert_closed(tx: &mut Tx, account_id: &AccountId, closed: &Closed) -> Result<()> {
    tx.sql(
        "INSERT INTO closed_days (account_id, day, totals, closed_at, closed_by)
         VALUES ($1, $2, $3, $4, $5)",
    )
    .params(params![account_id, closed.day, &closed.totals, closed.at, &closed.by])
    .execute()
    .await
}
