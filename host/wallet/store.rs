//! The rows of the ledger.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use super::{Account, Balance, Cover, Movement};
use crate::{
    clock::Timestamp,
    listing::{Page, Period},
    money::Minor,
    store::{FromRow, Result, Statement, Tx},
};

/// `false` when the movement's key was used before. The condition is for SQLite, where a trigger
/// refuses an existing key before `ON CONFLICT` applies; the conflict is for PostgreSQL, where another
/// transaction may insert the key meanwhile.
pub async fn begin(
    tx: &mut Tx,
    company_id: &str,
    id: &str,
    movement: &Movement,
    cover: Cover,
    now: Timestamp,
) -> Result<bool> {
    let overdraft_allowed = cover == Cover::Waived && movement.from == Account::Wallet;
    let inserted = tx
        .sql(
            "INSERT INTO ledger_transactions (company_id, id, key, kind, overdraft_allowed, created_at)
             SELECT $1, $2, $3, $4, $5, $6
             WHERE NOT EXISTS (SELECT 1 FROM ledger_transactions WHERE company_id = $1 AND key = $3)
             ON CONFLICT (company_id, key) DO NOTHING",
        )
        .bind(company_id)
        .bind(id)
        .bind(&movement.key)
        .bind(&*movement.kind)
        .bind(overdraft_allowed)
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

/// The least that a balance can be. Beyond it, and beyond `i64::MAX`, SQLite would make a float of a
/// sum.
pub const LEAST: Minor = Minor(-i64::MAX);

/// Adds an entry of a ledger transaction to a balance, whose row is locked until the transaction ends.
/// Returns the new balance; `None`, and no change, when it would be below `floor` or above `i64::MAX`.
pub async fn add(
    tx: &mut Tx,
    company_id: &str,
    transaction_id: &str,
    account: &str,
    currency: &str,
    amount: Minor,
    floor: Minor,
) -> Result<Option<Minor>> {
    // Not an upsert: on SQLite a trigger refuses to insert an existing row, because it cannot tell an
    // upsert from `INSERT OR REPLACE`.
    let balance = update(tx, company_id, transaction_id, account, currency, amount, floor).await?;
    if balance.is_some() {
        return Ok(balance);
    }
    tx.sql(
        "INSERT INTO ledger_balances (company_id, account, currency, amount_minor)
         SELECT $1, $2, $3, 0 WHERE NOT EXISTS (
             SELECT 1 FROM ledger_balances WHERE company_id = $1 AND account = $2 AND currency = $3)
         ON CONFLICT (company_id, account, currency) DO NOTHING",
    )
    .bind(company_id)
    .bind(account)
    .bind(currency)
    .run()
    .await?;
    update(tx, company_id, transaction_id, account, currency, amount, floor).await
}

/// `None` when there is no such row, or the sum is out of bounds.
async fn update(
    tx: &mut Tx,
    company_id: &str,
    transaction_id: &str,
    account: &str,
    currency: &str,
    amount: Minor,
    floor: Minor,
) -> Result<Option<Minor>> {
    // What the balance before may be.
    let (least, most) = (floor.0.saturating_sub(amount.0), i64::MAX.saturating_sub(amount.0));
    let balance: Option<(Minor,)> = tx
        .sql(
            "UPDATE ledger_balances SET amount_minor = amount_minor + $4, transaction_id = $5
             WHERE company_id = $1 AND account = $2 AND currency = $3 AND amount_minor BETWEEN $6 AND $7
             RETURNING amount_minor",
        )
        .bind(company_id)
        .bind(account)
        .bind(currency)
        .bind(amount)
        .bind(transaction_id)
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
    /// The reference of the payment or recollection that it belongs to.
    pub reference: Option<String>,
    pub created_at: Timestamp,
}

/// Which entries are wanted.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    pub account: Option<String>,
    pub created: Option<Period>,
}

/// A cross join, which SQLite reads in its written order: so neither engine sorts a whole ledger for a
/// page.
macro_rules! filtered {
    ($what:literal, $rest:literal) => {
        concat!(
            "SELECT ",
            $what,
            " FROM ledger_transactions t CROSS JOIN ledger_entries e
             WHERE t.company_id = $1 AND e.company_id = t.company_id AND e.transaction_id = t.id
             AND (CAST($2 AS TEXT) IS NULL OR e.account = $2)
             AND (CAST($3 AS BIGINT) IS NULL OR t.created_at >= $3 AND t.created_at < $4) ",
            $rest
        )
    };
}

/// A page of a company's ledger entries, newest first, and how many there are in all.
pub async fn entries(
    tx: &mut Tx,
    company_id: &str,
    filter: &Filter,
    page: Page,
) -> Result<(i64, Vec<Entry>)> {
    let count = match filter.created {
        Some(_) => filter.bind(tx.sql(filtered!("COUNT(*)", "")), company_id),
        // Without the ledger transactions, which take several times as long.
        None => tx
            .sql(
                "SELECT COUNT(*) FROM ledger_entries
                 WHERE company_id = $1 AND (CAST($2 AS TEXT) IS NULL OR account = $2)",
            )
            .bind(company_id.to_owned())
            .bind(filter.account.clone()),
    };
    let (total,) = count.one().await?;
    // A key names the record of its movement, in the forms that `payments`, `recollections` and `billing` use.
    let entries = tx.sql(filtered!(
        "e.transaction_id, t.key, t.kind, e.account, e.currency, e.amount_minor, t.created_at,
         CASE WHEN t.key LIKE 'payment:%' THEN
             (SELECT reference FROM payments WHERE company_id = t.company_id AND id = substr(t.key, 9, 24))
         WHEN t.key LIKE 'recollection:%' THEN
             (SELECT reference FROM recollections WHERE company_id = t.company_id AND id = substr(t.key, 14, 24))
         WHEN t.key LIKE 'charge:recollection:%' OR t.key LIKE 'refund:recollection:%' THEN
             (SELECT reference FROM recollections WHERE company_id = t.company_id AND id = substr(t.key, 21, 24))
         END AS reference",
        "ORDER BY t.created_at DESC, t.id DESC, e.line LIMIT $5 OFFSET $6"
    ));
    let entries = filter.bind(entries, company_id).bind(page.limit).bind(page.offset());
    Ok((total, entries.all().await?))
}

impl Filter {
    fn bind<'t>(&self, statement: Statement<'t>, company_id: &str) -> Statement<'t> {
        statement
            .bind(company_id.to_owned())
            .bind(self.account.clone())
            .bind(self.created.map(|period| period.from))
            .bind(self.created.map(|period| period.before))
    }
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
