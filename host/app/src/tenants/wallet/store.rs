//! Storage of the ledger.

use std::collections::BTreeMap;

use super::{Balance, LedgerAccount, LedgerTransaction, Overdraft, api::EntryFilter};
use crate::state::storage::*;

/// Inserts a ledger transaction; `false` if its key is already in use. SQLite needs the condition,
/// because a trigger rejects an existing key before `ON CONFLICT` applies; PostgreSQL needs `ON
/// CONFLICT`, because a concurrent transaction may insert the key.
pub async fn insert_transaction(
    tx: &mut Tx,
    company_id: &CompanyId,
    id: &str,
    movement: &LedgerTransaction,
    cover: Overdraft,
    now: Timestamp,
) -> Result<bool> {
    let overdraft_allowed = cover == Overdraft::Allowed && movement.from == LedgerAccount::Wallet;
    tx.sql(
        "INSERT INTO ledger_transactions (company_id, id, key, kind, overdraft_allowed,
             created_at)
         SELECT $1, $2, $3, $4, $5, $6
         WHERE NOT EXISTS (SELECT 1 FROM ledger_transactions WHERE company_id = $1
             AND key = $3)
         ON CONFLICT (company_id, key) DO NOTHING",
    )
    .params(params![company_id, id, &movement.key, &*movement.kind, overdraft_allowed, now])
    .affects_one()
    .await
}

pub struct NewEntry<'e> {
    pub company_id: &'e CompanyId,
    pub transaction_id: &'e str,
    pub line: i64,
    pub account: String,
    pub currency: &'e Currency,
    pub amount: Minor,
}

pub async fn insert_entry(tx: &mut Tx, entry: &NewEntry<'_>) -> Result<()> {
    let NewEntry { company_id, transaction_id, line, account, currency, amount } = entry;
    tx.sql(
        "INSERT INTO ledger_entries (company_id, transaction_id, line, account, currency,
             amount_minor)
         VALUES ($1, $2, $3, $4, $5, $6)",
    )
    .params(params![company_id, transaction_id, line, account, currency, amount])
    .execute()
    .await
}

/// The lowest balance. Below it, and above `i64::MAX`, SQLite would convert a sum to a float.
pub const MIN_BALANCE: Minor = Minor(-i64::MAX);

/// Adds a ledger entry to a balance and locks its row until the transaction ends. Returns the new
/// balance; `None`, and no change, if it would be below `floor` or above `i64::MAX`.
pub async fn add_to_balance(
    tx: &mut Tx,
    entry: &NewEntry<'_>,
    floor: Minor,
) -> Result<Option<Minor>> {
    // Not an upsert: on SQLite a trigger rejects the insertion of an existing row, because it
    // cannot distinguish an upsert from `INSERT OR REPLACE`.
    let balance = update(tx, entry, floor).await?;
    if balance.is_some() {
        return Ok(balance);
    }
    tx.sql(
        "INSERT INTO ledger_balances (company_id, account, currency, amount_minor)
         SELECT $1, $2, $3, 0 WHERE NOT EXISTS (
             SELECT 1 FROM ledger_balances WHERE company_id = $1 AND account = $2
                 AND currency = $3)
         ON CONFLICT (company_id, account, currency) DO NOTHING",
    )
    .params(params![entry.company_id, &entry.account, entry.currency])
    .execute()
    .await?;
    update(tx, entry, floor).await
}

/// Returns `None` if there is no such row, or the sum is out of bounds.
async fn update(tx: &mut Tx, entry: &NewEntry<'_>, floor: Minor) -> Result<Option<Minor>> {
    let NewEntry { company_id, transaction_id, account, currency, amount, .. } = entry;
    // Bounds of the old balance.
    let (least, most) = (floor.0.saturating_sub(amount.0), i64::MAX.saturating_sub(amount.0));
    tx.sql(
        "UPDATE ledger_balances SET amount_minor = amount_minor + $4, transaction_id = $5
         WHERE company_id = $1 AND account = $2 AND currency = $3
             AND amount_minor BETWEEN $6 AND $7
         RETURNING amount_minor",
    )
    .params(params![company_id, account, currency, amount, transaction_id, least, most])
    .optional_value()
    .await
}

/// Returns available and pending balances by currency.
pub async fn balances(tx: &mut Tx, company_id: &CompanyId) -> Result<BTreeMap<Currency, Balance>> {
    let rows: Vec<(String, Currency, Minor)> = tx
        .sql(
            "SELECT account, currency, amount_minor FROM ledger_balances
             WHERE company_id = $1 AND account IN ($2, $3)",
        )
        .params(params![company_id, LedgerAccount::Wallet.name(), LedgerAccount::Pending.name()])
        .all()
        .await?;
    let mut balances: BTreeMap<Currency, Balance> = BTreeMap::new();
    for (account, currency, amount) in rows {
        let balance = balances.entry(currency).or_default();
        if account == LedgerAccount::Wallet.name() {
            balance.balance = amount;
        } else {
            balance.pending = amount;
        }
    }
    Ok(balances)
}

/// A ledger entry.
#[derive(Debug, FromRow, Serialize, JsonSchema)]
#[schemars(rename = "WalletEntry")]
pub struct LedgerEntry {
    /// Ledger transaction; both of its entries have the same value.
    pub transaction_id: String,
    /// Unique key of the ledger transaction.
    pub key: String,
    /// Kind of the ledger transaction, for example `operator.credit`.
    pub kind: String,
    /// Ledger account: `wallet`, `pending`, `billing`, `operator` or `provider:NAME`.
    pub account: String,
    pub currency: Currency,
    #[sqlx(rename = "amount_minor")]
    pub amount: Minor,
    /// Reference of the related payment or recollection.
    pub reference: Option<String>,
    pub created_at: Timestamp,
}

/// Returns a page of a company's ledger entries, newest first.
pub async fn list_entries(
    tx: &mut Tx,
    company_id: &CompanyId,
    filter: &EntryFilter,
    page: PageRequest,
) -> Result<ListPage<LedgerEntry>> {
    // A cross join: SQLite keeps its table order, so neither engine sorts the ledger for one page.
    let filtered = |select| {
        DynamicStatement::from(select)
            .append(
                " FROM ledger_transactions t CROSS JOIN ledger_entries e
                 WHERE e.company_id = t.company_id AND e.transaction_id = t.id
                     AND t.company_id = ",
            )
            .bind(company_id)
            .append_if(" AND e.account = ", filter.account.as_ref())
            .append_period([" AND t.created_at >= ", " AND t.created_at < "], filter.created_at)
    };
    let count = match filter.created_at {
        Some(_) => filtered("SELECT COUNT(*)"),
        // Avoids the join with ledger transactions, which multiplies the time.
        None => DynamicStatement::from("SELECT COUNT(*) FROM ledger_entries WHERE company_id = ")
            .bind(company_id)
            .append_if(" AND account = ", filter.account.as_ref()),
    };
    let total = tx.dynamic(&count).value().await?;
    // The key names the related record in the formats of `payments`, `recollections` and `billing`.
    let entries = filtered(
        "SELECT e.transaction_id, t.key, t.kind, e.account, e.currency, e.amount_minor,
             t.created_at,
             CASE WHEN t.key LIKE 'payment:%' THEN
                 (SELECT reference FROM payments
                  WHERE company_id = t.company_id AND id = substr(t.key, 9, 24))
             WHEN t.key LIKE 'recollection:%' THEN
                 (SELECT reference FROM recollections
                  WHERE company_id = t.company_id AND id = substr(t.key, 14, 24))
             WHEN t.key LIKE 'charge:recollection:%' OR t.key LIKE 'refund:recollection:%' THEN
                 (SELECT reference FROM recollections
                  WHERE company_id = t.company_id AND id = substr(t.key, 21, 24))
             END AS reference",
    );
    let entries = entries
        .append(" ORDER BY t.created_at DESC, t.id DESC, e.line LIMIT ")
        .bind(page.limit)
        .append(" OFFSET ")
        .bind(page.offset());
    Ok(page.to_list_page(total, tx.dynamic(&entries).all().await?))
}

/// Returns kind, currency and amount of a ledger transaction; `None` if missing or of amount zero.
pub async fn find_posted(
    tx: &mut Tx,
    company_id: &CompanyId,
    key: &str,
) -> Result<Option<(String, Currency, Minor)>> {
    tx.sql(
        "SELECT t.kind, e.currency, e.amount_minor FROM ledger_transactions t
         JOIN ledger_entries e ON e.company_id = t.company_id AND e.transaction_id = t.id AND e.line = 2
         WHERE t.company_id = $1 AND t.key = $2",
    )
    .params(params![company_id, key])
    .optional()
    .await
}

/// Returns whether a ledger transaction was posted, even for a zero amount.
pub async fn is_posted(tx: &mut Tx, company_id: &CompanyId, key: &str) -> Result<bool> {
    let found: Option<String> = tx
        .sql("SELECT id FROM ledger_transactions WHERE company_id = $1 AND key = $2")
        .params(params![company_id, key])
        .optional_value()
        .await?;
    Ok(found.is_some())
}
