//! Totals of days, and closed days.

use super::super::days::{Closed, Total};
use crate::{
    money::prelude::{Account, AccountId},
    state::storage::*,
};

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

/// The open exceptions of a day.
#[derive(Clone, Copy, Debug, FromRow)]
pub struct OpenCount {
    pub day: Timestamp,
    pub open: i64,
}

pub async fn count_open_by_day(
    tx: &mut Tx,
    account_id: &AccountId,
    (from, before): (Timestamp, Timestamp),
) -> Result<Vec<OpenCount>> {
    tx.sql(
        "SELECT day, COUNT(*) AS open FROM exceptions
         WHERE account_id = $1 AND account_id <> '' AND day >= $2 AND day < $3 AND state = 'open'
         GROUP BY day",
    )
    .params(params![account_id, from, before])
    .all()
    .await
}

/// Returns the number of transactions of a period that do not match and that no operator has
/// resolved. Unknown payments at a company's own account do not count: the company may take
/// payments without this host.
pub async fn count_unresolved(
    tx: &mut Tx,
    account: &Account,
    (from, before): (Timestamp, Timestamp),
) -> Result<i64> {
    tx.sql(
        "SELECT COUNT(*) FROM provider_transactions t
         WHERE t.account_id = $1 AND t.at >= $2 AND t.at < $3 AND t.result <> 'matched'
             AND (t.charge_id IS NOT NULL OR $4) AND NOT EXISTS (
                 SELECT 1 FROM exceptions e
                 WHERE e.account_id = t.account_id AND e.account_id <> ''
                     AND e.subject = t.kind || ':' || t.provider_id AND e.state = 'resolved'
                     AND e.kind LIKE '%' || t.result)",
    )
    .params(params![&account.id, from, before, account.is_service_account()])
    .value()
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
