//! The rows of settlements.

use crate::{money::prelude::AccountId, state::storage::*};

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
    /// The amount of the payout.
    #[sqlx(rename = "amount_minor")]
    pub amount: Minor,
    /// The total amount of its payments, as the provider states it.
    #[sqlx(rename = "gross_minor")]
    pub gross: Minor,
    /// The total fees of its payments, as the provider states them.
    #[sqlx(rename = "fees_minor")]
    pub fees: Minor,
    /// Refunds, disputes and other deductions, as the provider states them.
    #[sqlx(rename = "deductions_minor")]
    pub deductions: Minor,
    pub currency: Currency,
    /// The date of the payout.
    pub at: Timestamp,
    /// `true` if its payments have been listed since it was paid.
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

/// Returns the time of the oldest settlement since `since` that was not paid out when the list
/// began at `begun`. It is the same for each page of the list.
pub async fn oldest_pending_settlement(
    tx: &mut Tx,
    account_id: &AccountId,
    since: Timestamp,
    begun: Timestamp,
) -> Result<Option<Timestamp>> {
    tx.sql(
        "SELECT at FROM provider_settlements
         WHERE account_id = $1 AND at >= $2 AND (state = 'pending' OR updated_at >= $3)
         ORDER BY at LIMIT 1",
    )
    .params(params![account_id, since, begun])
    .optional_value()
    .await
}

/// The sum of the listed payments of a settlement.
#[derive(Clone, Copy, Debug, FromRow, PartialEq, Eq)]
pub struct SettledPayments {
    /// Their amounts less their fees.
    #[sqlx(rename = "net_minor")]
    pub net: Minor,
    /// Number of those whose fees the list lacks.
    pub without_fees: i64,
}

pub async fn sum_settled(tx: &mut Tx, settlement: &Settlement) -> Result<SettledPayments> {
    tx.sql(
        "SELECT CAST(COALESCE(SUM(amount_minor - COALESCE(fees_minor, 0)), 0) AS BIGINT)
                 AS net_minor,
             CAST(COALESCE(SUM(CASE WHEN fees_minor IS NULL THEN 1 ELSE 0 END), 0) AS BIGINT)
                 AS without_fees
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
