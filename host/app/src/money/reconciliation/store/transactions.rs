//! The rows of listed transactions.

use super::super::{Comparison, TransactionKind};
use crate::{
    money::{
        charges::{Charge, ChargeId},
        prelude::AccountId,
    },
    state::storage::*,
};
use tollhouse_plugins::ListedTransaction;

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
    /// The charge, refund or dispute that it matches.
    pub record_id: Option<String>,
    pub result: Comparison,
    /// The end of the last list that has it.
    pub listed_until: Timestamp,
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
             transaction_id, amount_minor, fees_minor, currency, at, settlement_id, company_id,
             charge_id, record_id, result, listed_until, created_at, updated_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17)
         ON CONFLICT (account_id, kind, provider_id) DO UPDATE SET service_ref = $4,
             transaction_id = $5, amount_minor = $6, fees_minor = $7, currency = $8, at = $9,
             settlement_id = $10, company_id = $11, charge_id = $12, record_id = $13,
             result = $14, listed_until = $15, updated_at = $17",
    )
    .params(params![
        &transaction.account_id, transaction.kind, &transaction.provider_id,
        &transaction.service_ref, &transaction.transaction_id, transaction.amount,
        transaction.fees, &transaction.currency, transaction.at, &transaction.settlement_id,
        &transaction.company_id, &transaction.charge_id, &transaction.record_id,
        transaction.result, transaction.listed_until, transaction.created_at,
        transaction.updated_at
    ])
    .execute()
    .await
}

/// Records that a list has these transactions.
pub async fn mark_listed(
    tx: &mut Tx,
    account_id: &AccountId,
    ids: &[(TransactionKind, String)],
    until: Timestamp,
) -> Result<()> {
    for kind in TransactionKind::ALL {
        let of_kind = ids.iter().filter(|(of, _)| *of == kind);
        let ids: Vec<String> = of_kind.map(|(_, id)| id.clone()).collect();
        if ids.is_empty() {
            continue;
        }
        let sql = DynamicStatement::from("UPDATE provider_transactions SET listed_until = ")
            .bind(until)
            .append(" WHERE account_id = ")
            .bind(account_id)
            .append(" AND kind = ")
            .bind(<&str>::from(kind))
            .append(" AND provider_id")
            .append_in(&ids);
        tx.dynamic(&sql).execute().await?;
    }
    Ok(())
}

/// Returns the payment that a settlement shows: by its id, or else by its reference.
pub async fn find_listed(
    tx: &mut Tx,
    listed: &ListedTransaction,
    account_id: &AccountId,
) -> Result<Option<ProviderTransaction>> {
    tx.sql(
        "SELECT * FROM provider_transactions
         WHERE account_id = $1 AND kind = 'payment'
             AND (provider_id = $2 OR service_ref = $3 AND service_ref <> '')
         ORDER BY CASE WHEN provider_id = $2 THEN 0 ELSE 1 END LIMIT 1",
    )
    .params(params![account_id, &listed.id, &listed.service_ref])
    .optional()
    .await
}

/// Returns whether a listed transaction other than this one matches a record of a charge.
pub async fn is_claimed(
    tx: &mut Tx,
    charge: &Charge,
    (kind, provider_id): (TransactionKind, &str),
    record_id: &str,
) -> Result<bool> {
    let found: Option<String> = tx
        .sql(
            "SELECT provider_id FROM provider_transactions
             WHERE company_id = $1 AND charge_id = $2 AND account_id = $3 AND kind = $4
                 AND record_id = $5 AND provider_id <> $6 LIMIT 1",
        )
        .params(params![
            &charge.company_id, &charge.id, &charge.account_id, kind, record_id, provider_id
        ])
        .optional_value()
        .await?;
    Ok(found.is_some())
}

/// Returns transactions after `after` that do not match and are not older than `since`.
pub async fn list_differing(
    tx: &mut Tx,
    account_id: &AccountId,
    (kind, provider_id): (&str, &str),
    since: Timestamp,
    limit: i64,
) -> Result<Vec<ProviderTransaction>> {
    tx.sql(
        "SELECT * FROM provider_transactions
         WHERE account_id = $1 AND result <> 'matched' AND (kind, provider_id) > ($2, $3)
             AND at >= $4
         ORDER BY kind, provider_id LIMIT $5",
    )
    .params(params![account_id, kind, provider_id, since, limit])
    .all()
    .await
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
         WHERE r.provider_id = $2 AND r.provider_id <> '' AND c.account_id = $1 LIMIT 1",
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
