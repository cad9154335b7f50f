//! Storage of the ledger.

use std::collections::BTreeMap;

use super::{
    Balance, LedgerAccount, LedgerTransaction, Overdraft, api::EntryFilter,
    statement::StatementLine,
};
use crate::state::storage::*;
use tollhouse_platform::{store::Error, values::listing::Period};

/// Inserts a ledger transaction, which triggers add to the balances, unless its key is in use.
/// SQLite needs the condition, because a trigger rejects an existing key before `ON CONFLICT`
/// applies; PostgreSQL needs `ON CONFLICT`, because a concurrent transaction may insert the key.
const INSERT_ONCE: &str = "INSERT INTO ledger_transactions (company_id, id, key, kind,
         overdraft_allowed, created_at, debit, credit, currency, amount_minor)
     SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10
     WHERE NOT EXISTS (SELECT 1 FROM ledger_transactions WHERE company_id = $1 AND key = $3)
     ON CONFLICT (company_id, key) DO NOTHING";

/// Inserts a ledger transaction; `false` if its key is already in use.
pub async fn insert_transaction(
    tx: &mut Tx,
    company_id: &CompanyId,
    id: &str,
    transaction: &LedgerTransaction,
    overdraft: Overdraft,
    now: Timestamp,
) -> Result<bool> {
    let LedgerTransaction { key, kind, from, money, .. } = transaction;
    let overdraft_allowed = overdraft == Overdraft::Allowed && *from == LedgerAccount::Wallet;
    let (debit, credit, currency) = sides(transaction);
    tx.sql(INSERT_ONCE)
        .params(params![company_id, id, key, &**kind, overdraft_allowed, now])
        .params(params![debit, credit, currency, money.minor])
        .affects_one()
        .await
}

/// At the commit, inserts a ledger transaction that does not debit the wallet, unless its key is in
/// use.
pub async fn insert_once(
    tx: &mut Tx,
    company_id: &CompanyId,
    id: &str,
    transaction: &LedgerTransaction,
    now: Timestamp,
) -> Result<()> {
    let LedgerTransaction { key, kind, money, .. } = transaction;
    let (debit, credit, currency) = sides(transaction);
    tx.defer(INSERT_ONCE)
        .params(params![company_id, id, key, &**kind, false, now])
        .params(params![debit, credit, currency, money.minor])
        .execute()
        .await
}

/// Inserts a ledger transaction under a new key that does not debit the wallet.
pub async fn insert_new(
    tx: &mut Tx,
    company_id: &CompanyId,
    id: &str,
    transaction: &LedgerTransaction,
    now: Timestamp,
) -> Result<()> {
    let LedgerTransaction { key, kind, money, .. } = transaction;
    let (debit, credit, currency) = sides(transaction);
    tx.defer(
        "INSERT INTO ledger_transactions (company_id, id, key, kind, overdraft_allowed, created_at,
             debit, credit, currency, amount_minor)
         VALUES ($1, $2, $3, $4, FALSE, $5, $6, $7, $8, $9)",
    )
    .params(params![company_id, id, key, &**kind, now, debit, credit, currency, money.minor])
    .execute()
    .await
}

/// Inserts a debit of the wallet under a new key. Locks the balance, and fails unless it is at
/// least `needed`.
pub async fn insert_covered(
    tx: &mut Tx,
    company_id: &CompanyId,
    id: &str,
    transaction: &LedgerTransaction,
    needed: Minor,
    now: Timestamp,
) -> Result<()> {
    let LedgerTransaction { key, kind, money, .. } = transaction;
    let (debit, credit, currency) = sides(transaction);
    tx.defer(
        "INSERT INTO ledger_transactions (company_id, id, key, kind, overdraft_allowed, created_at,
             debit, credit, currency, amount_minor)
         SELECT company_id, $2, $3, $4, FALSE, $5, account, $7, currency, $9
         FROM ledger_balances WHERE company_id = $1 AND account = $6 AND currency = $8
             AND amount_minor >= $10 FOR UPDATE",
    )
    .params(params![company_id, id, key, &**kind, now, debit, credit, currency, money.minor])
    .params(params![needed])
    .require_one()
    .await
}

/// Returns the price of an item by the company's plan, else by the default plan, if one is set; and
/// the available balance in the billing currency.
pub async fn price_and_balance(
    tx: &mut Tx,
    company_id: &CompanyId,
    item: &str,
) -> Result<(Option<Minor>, Option<Minor>)> {
    tx.sql(
        "SELECT (SELECT amount_minor FROM prices WHERE company_id IN ($1, $2) AND item = $3
                 ORDER BY company_id DESC LIMIT 1),
             (SELECT amount_minor FROM ledger_account_balances
              WHERE company_id = $1 AND account = $4 AND currency = $5)",
    )
    .params(params![company_id, Owner::Service.column(), item])
    .params(params![LedgerAccount::Wallet.name(), BILLING_CURRENCY])
    .one()
    .await
}

/// Returns the accounts and the currency, unless the amount is zero.
fn sides(transaction: &LedgerTransaction) -> (Option<String>, Option<String>, Option<&Currency>) {
    let moves = transaction.money.minor > Minor(0);
    let name = |account: &LedgerAccount| moves.then(|| account.name());
    let currency = moves.then_some(&transaction.money.currency);
    (name(&transaction.from), name(&transaction.to), currency)
}

/// The reason why the schema rejects a ledger transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rejection {
    /// The wallet does not cover it.
    NotCovered,
    /// A balance would be out of range.
    OutOfRange,
}

/// Returns why [`insert_transaction`] failed; `None` for any other error.
pub fn rejection(error: &Error) -> Option<Rejection> {
    let (code, message) = error.from_database()?;
    match (&*code, message) {
        (_, "the wallet does not cover the ledger transaction") => Some(Rejection::NotCovered),
        (_, "a ledger balance would be out of range") | ("22003", _) => Some(Rejection::OutOfRange),
        _ => None,
    }
}

/// Returns available and pending balances by currency.
pub async fn balances(tx: &mut Tx, company_id: &CompanyId) -> Result<BTreeMap<Currency, Balance>> {
    let rows: Vec<(String, Currency, Minor)> = tx
        .sql(
            "SELECT account, currency, amount_minor FROM ledger_account_balances
             WHERE company_id = $1 AND account IN ('wallet', 'pending', 'disputed')",
        )
        .params(params![company_id])
        .all()
        .await?;
    let mut balances: BTreeMap<Currency, Balance> = BTreeMap::new();
    for (account, currency, amount) in rows {
        let balance = balances.entry(currency).or_default();
        match &*account {
            "wallet" => {
                balance.balance = amount;
                balance.owed = Minor((-amount.0).max(0));
            }
            "disputed" => balance.disputed = amount,
            _ => balance.pending = amount,
        }
    }
    Ok(balances)
}

/// Returns the companies that have deltas. On PostgreSQL only.
pub async fn unfolded_companies(tx: &mut Tx) -> Result<Vec<CompanyId>> {
    tx.sql("SELECT DISTINCT company_id FROM ledger_deltas ORDER BY company_id").values().await
}

/// Adds up to `most` deltas of each of a company's ledger accounts to its balance. On PostgreSQL
/// only.
pub async fn fold(tx: &mut Tx, company_id: &CompanyId, most: i64) -> Result<()> {
    // In the order of names: two hosts that fold at once do not deadlock.
    tx.sql(
        "SELECT COUNT(fold_ledger_account($1, account, currency, $2)) FROM (
             SELECT account, currency FROM ledger_deltas WHERE company_id = $1
             GROUP BY account, currency ORDER BY account, currency) unfolded",
    )
    .params(params![company_id, most])
    .execute()
    .await
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
    /// Ledger account: `wallet`, `pending`, `billing`, `operator`, `verification`, `disputed`,
    /// `fees`, `suspense` or `provider:NAME`.
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
    // Each ledger transaction has two lines. A cross join: SQLite keeps its table order, so neither
    // engine sorts the ledger for one page.
    let filtered = |select| {
        DynamicStatement::from(select)
            .append(
                " FROM ledger_transactions t CROSS JOIN (SELECT 1 AS line UNION ALL SELECT 2) side
                 WHERE t.amount_minor > 0 AND t.company_id = ",
            )
            .bind(company_id)
            .append_if(
                " AND CASE side.line WHEN 1 THEN t.debit ELSE t.credit END = ",
                filter.account.as_ref(),
            )
            .append_period([" AND t.created_at >= ", " AND t.created_at < "], filter.created_at)
    };
    let total = tx.dynamic(&filtered("SELECT COUNT(*)")).value().await?;
    // The key names the related record in the formats of `payments`, `charges`, `recollections`
    // and `billing`.
    let entries = filtered(
        "SELECT t.id AS transaction_id, t.key, t.kind, t.currency, t.created_at,
             CASE side.line WHEN 1 THEN t.debit ELSE t.credit END AS account,
             CASE side.line WHEN 1 THEN -t.amount_minor ELSE t.amount_minor END AS amount_minor,
             CASE WHEN t.key LIKE 'payment:%' THEN
                 (SELECT reference FROM payments
                  WHERE company_id = t.company_id AND id = substr(t.key, 9, 24))
             WHEN t.key LIKE 'taken:%' THEN
                 (SELECT COALESCE(p.reference, r.reference) FROM charges c
                  LEFT JOIN payments p ON c.owner_kind = 'payment'
                      AND p.company_id = c.company_id AND p.id = c.owner_id
                  LEFT JOIN recollections r ON c.owner_kind = 'recollection'
                      AND r.company_id = c.company_id AND r.id = c.owner_id
                  WHERE c.company_id = t.company_id AND c.id = substr(t.key, 7, 24))
             WHEN t.key LIKE 'recollection:%' THEN
                 (SELECT reference FROM recollections
                  WHERE company_id = t.company_id AND id = substr(t.key, 14, 24))
             WHEN t.key LIKE 'charge:recollection:%' OR t.key LIKE 'refund:recollection:%' THEN
                 (SELECT reference FROM recollections
                  WHERE company_id = t.company_id AND id = substr(t.key, 21, 24))
             END AS reference",
    );
    let entries = entries
        .append(" ORDER BY t.created_at DESC, t.id DESC, side.line LIMIT ")
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
        "SELECT kind, currency, amount_minor FROM ledger_transactions
         WHERE company_id = $1 AND key = $2 AND amount_minor > 0",
    )
    .params(params![company_id, key])
    .optional()
    .await
}

/// A ledger transaction with an amount.
#[derive(Debug, FromRow)]
pub struct Posted {
    pub key: String,
    pub kind: String,
    pub debit: String,
    pub credit: String,
    pub currency: Currency,
    #[sqlx(rename = "amount_minor")]
    pub amount: Minor,
    pub created_at: Timestamp,
}

/// Returns the ledger transactions with these keys, oldest first.
pub async fn list_posted(
    tx: &mut Tx,
    company_id: &CompanyId,
    keys: &[String],
) -> Result<Vec<Posted>> {
    let select = DynamicStatement::from(
        "SELECT key, kind, debit, credit, currency, amount_minor, created_at
         FROM ledger_transactions WHERE amount_minor > 0 AND company_id = ",
    );
    let select = select.bind(company_id).append(" AND key").append_in(keys);
    tx.dynamic(&select.append(" ORDER BY created_at, id")).all().await
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

/// The amount by which a ledger transaction changes the wallet.
macro_rules! wallet_change {
    () => {
        "CASE WHEN credit = 'wallet' THEN amount_minor ELSE -amount_minor END"
    };
}

/// Returns the sum of the wallet's transactions at `since` or later.
pub async fn sum_since(
    tx: &mut Tx,
    company_id: &CompanyId,
    currency: &Currency,
    since: Timestamp,
) -> Result<Minor> {
    tx.sql(concat!(
        "SELECT CAST(COALESCE(SUM(",
        wallet_change!(),
        "), 0) AS BIGINT) FROM ledger_transactions
         WHERE company_id = $1 AND currency = $2 AND created_at >= $3
             AND (credit = 'wallet' OR debit = 'wallet')"
    ))
    .params(params![company_id, currency, since])
    .value()
    .await
}

/// Returns the sums of the wallet's transactions of a period by kind.
pub async fn statement_lines(
    tx: &mut Tx,
    company_id: &CompanyId,
    currency: &Currency,
    period: Period,
) -> Result<Vec<StatementLine>> {
    tx.sql(concat!(
        "SELECT kind, COUNT(*) AS number, CAST(SUM(",
        wallet_change!(),
        ") AS BIGINT) AS amount_minor, currency FROM ledger_transactions
         WHERE company_id = $1 AND currency = $2 AND created_at >= $3 AND created_at < $4
             AND (credit = 'wallet' OR debit = 'wallet') AND amount_minor > 0
         GROUP BY kind, currency ORDER BY kind"
    ))
    .params(params![company_id, currency, period.from, period.before])
    .all()
    .await
}
