//! The rows of the ledger.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use super::{Account, Balance, Movement};
use crate::{
    clock::Timestamp,
    listing::Page,
    money::Minor,
    store::{FromRow, Result, Tx},
};

/// `false` when the movement's key was used before.
pub async fn begin(
    tx: &mut Tx,
    company_id: &str,
    id: &str,
    movement: &Movement,
    now: Timestamp,
) -> Result<bool> {
    let inserted = tx
        .sql(
            "INSERT INTO ledger_transactions (company_id, id, key, kind, created_at)
             VALUES ($1, $2, $3, $4, $5) ON CONFLICT (company_id, key) DO NOTHING",
        )
        .bind(company_id)
        .bind(id)
        .bind(&movement.key)
        .bind(&*movement.kind)
        .bind(now)
        .run()
        .await?;
    Ok(inserted == 1)
}

pub async fn enter(
    tx: &mut Tx,
    company_id: &str,
    transaction_id: &str,
    line: i64,
    account: &str,
    currency: &str,
    amount: Minor,
) -> Result<()> {
    tx.sql(
        "INSERT INTO ledger_entries (company_id, transaction_id, line, account, currency, amount_minor)
         VALUES ($1, $2, $3, $4, $5, $6)",
    )
    .bind(company_id)
    .bind(transaction_id)
    .bind(line)
    .bind(account)
    .bind(currency)
    .bind(amount)
    .run()
    .await?;
    Ok(())
}

/// Adds to a balance, whose row is locked until the transaction ends; answers the new balance. `None` when the sum is more than
/// a balance can be: SQLite would make a float of it.
pub async fn add(
    tx: &mut Tx,
    company_id: &str,
    account: &str,
    currency: &str,
    amount: Minor,
) -> Result<Option<Minor>> {
    // What the balance before may be, so that the one after is at most `i64::MAX` either way.
    let (least, most) = ((-i64::MAX).saturating_sub(amount.0), i64::MAX.saturating_sub(amount.0));
    let balance: Option<(Minor,)> = tx
        .sql(
            "INSERT INTO ledger_balances (company_id, account, currency, amount_minor)
             VALUES ($1, $2, $3, $4)
             ON CONFLICT (company_id, account, currency)
             DO UPDATE SET amount_minor = ledger_balances.amount_minor + excluded.amount_minor
             WHERE ledger_balances.amount_minor BETWEEN $5 AND $6
             RETURNING amount_minor",
        )
        .bind(company_id)
        .bind(account)
        .bind(currency)
        .bind(amount)
        .bind(least)
        .bind(most)
        .optional()
        .await?;
    Ok(balance.map(|(balance,)| balance))
}

/// Balance and pending by currency.
pub async fn balances(tx: &mut Tx, company_id: &str) -> Result<BTreeMap<String, Balance>> {
    let rows: Vec<(String, String, Minor)> = tx
        .sql(
            "SELECT account, currency, amount_minor FROM ledger_balances
             WHERE company_id = $1 AND account IN ($2, $3)",
        )
        .bind(company_id)
        .bind(Account::Wallet.name())
        .bind(Account::Pending.name())
        .all()
        .await?;
    let mut balances: BTreeMap<String, Balance> = BTreeMap::new();
    for (account, currency, amount) in rows {
        let balance = balances.entry(currency).or_default();
        if account == Account::Wallet.name() {
            balance.balance = amount;
        } else {
            balance.pending = amount;
        }
    }
    Ok(balances)
}

/// One side of a movement.
#[derive(Debug, FromRow, Serialize, JsonSchema)]
#[schemars(rename = "WalletEntry")]
pub struct Entry {
    /// The same on both sides.
    pub transaction_id: String,
    /// What the movement happened once by.
    pub key: String,
    /// Such as `operator.credit`.
    pub kind: String,
    /// `wallet`, `pending`, `billing`, `operator` or `provider:NAME`.
    pub account: String,
    pub currency: String,
    #[sqlx(rename = "amount_minor")]
    pub amount: Minor,
    pub created_at: Timestamp,
}

/// The entries of a company's book, newest first, and how many there are in all.
pub async fn entries(tx: &mut Tx, company_id: &str, page: Page) -> Result<(i64, Vec<Entry>)> {
    let (total,) = tx
        .sql("SELECT COUNT(*) FROM ledger_entries WHERE company_id = $1")
        .bind(company_id)
        .one()
        .await?;
    // A cross join, since SQLite reads that in its written order: so neither engine sorts a whole book for a page.
    let entries = tx
        .sql(
            "SELECT e.transaction_id, t.key, t.kind, e.account, e.currency, e.amount_minor, t.created_at
             FROM ledger_transactions t CROSS JOIN ledger_entries e
             WHERE t.company_id = $1 AND e.company_id = t.company_id AND e.transaction_id = t.id
             ORDER BY t.created_at DESC, t.id DESC, e.line LIMIT $2 OFFSET $3",
        )
        .bind(company_id)
        .bind(page.limit)
        .bind(page.offset())
        .all()
        .await?;
    Ok((total, entries))
}

/// Kind, currency and amount of a movement that was posted; `None` when none was, or nothing was moved by it.
pub async fn posted(
    tx: &mut Tx,
    company_id: &str,
    key: &str,
) -> Result<Option<(String, String, Minor)>> {
    tx.sql(
        "SELECT t.kind, e.currency, e.amount_minor FROM ledger_transactions t
         JOIN ledger_entries e ON e.company_id = t.company_id AND e.transaction_id = t.id AND e.line = 2
         WHERE t.company_id = $1 AND t.key = $2",
    )
    .bind(company_id)
    .bind(key)
    .optional()
    .await
}

/// Whether a movement was posted, be it of nothing.
pub async fn is_posted(tx: &mut Tx, company_id: &str, key: &str) -> Result<bool> {
    let found: Option<(String,)> = tx
        .sql("SELECT id FROM ledger_transactions WHERE company_id = $1 AND key = $2")
        .bind(company_id)
        .bind(key)
        .optional()
        .await?;
    Ok(found.is_some())
}
