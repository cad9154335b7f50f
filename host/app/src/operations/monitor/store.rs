//! Queries across all companies, for operators only. Counts of backlogs stop at [`MAX_COUNT`].

use crate::state::{metrics::Backlog, storage::*};

/// Maximum count of a backlog: beyond it, the exact number does not matter.
const MAX_COUNT: i64 = 10_000;

/// Returns all backlogs, in the order of `Metrics::set_backlogs`.
pub async fn backlogs(tx: &mut Tx, app: &App, now: Timestamp) -> Result<[Vec<Backlog>; 9]> {
    Ok([
        due_jobs(tx, app, now).await?,
        tx.sql(PENDING_DELIVERIES).bind(MAX_COUNT).all().await?,
        pending_payments(tx, now).await?,
        tx.sql(PENDING_CHARGES).bind(MAX_COUNT).all().await?,
        tx.sql(OPEN_REFUNDS).bind(MAX_COUNT).all().await?,
        tx.sql(OPEN_EXCEPTIONS).bind(MAX_COUNT).all().await?,
        tx.sql(QUEUED_MESSAGES).bind(MAX_COUNT).all().await?,
        of_all_kinds(app, tx.sql(FAILING_JOBS).bind(MAX_COUNT).all().await?),
        of_all_kinds(app, tx.sql(PARKED_JOBS).bind(MAX_COUNT).all().await?),
    ])
}

/// Waiting work of all companies.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Queue {
    /// `jobs` that are due, `deliveries` of events, or messages by `email` or `sms`.
    pub name: String,
    /// Number of items. Counting stops at 10,000 of a kind.
    pub number: i64,
    /// When the oldest was due or created.
    pub oldest: Option<Timestamp>,
}

/// Returns the queues of work.
pub async fn queues(tx: &mut Tx, app: &App, now: Timestamp) -> Result<Vec<Queue>> {
    let sum = |name: &str, of: Vec<Backlog>| Queue {
        name: name.to_owned(),
        number: of.iter().map(|(_, number, _)| number).sum(),
        oldest: of.iter().filter_map(|(_, _, oldest)| *oldest).min(),
    };
    let jobs = sum("jobs", due_jobs(tx, app, now).await?);
    let deliveries = tx.sql(PENDING_DELIVERIES).bind(MAX_COUNT).all().await?;
    let messages: Vec<Backlog> = tx.sql(QUEUED_MESSAGES).bind(MAX_COUNT).all().await?;
    let messages =
        messages.into_iter().map(|(name, number, oldest)| Queue { name, number, oldest });
    Ok([jobs, sum("deliveries", deliveries)].into_iter().chain(messages).collect())
}

async fn due_jobs(tx: &mut Tx, app: &App, now: Timestamp) -> Result<Vec<Backlog>> {
    let mut due = Vec::new();
    for kind in app.workers.kinds() {
        let (count, oldest) = tx
            .sql(
                "SELECT COUNT(*), MIN(run_at) FROM (
                     SELECT run_at FROM jobs WHERE kind = $1 AND run_at <= $2
                     ORDER BY run_at LIMIT $3) due",
            )
            .params(params![kind, now, MAX_COUNT])
            .one()
            .await?;
        due.push((kind.to_owned(), count, oldest));
    }
    Ok(due)
}

const FAILING_JOBS: &str = "
    SELECT kind, COUNT(*), MIN(due_at) FROM (
        SELECT kind, due_at FROM jobs WHERE failures >= 10 ORDER BY failures DESC LIMIT $1) failing
    GROUP BY kind";

const PARKED_JOBS: &str = "
    SELECT kind, COUNT(*), MIN(parked_at) FROM (
        SELECT kind, parked_at FROM jobs WHERE failures >= 10 AND parked_at IS NOT NULL
        LIMIT $1) parked
    GROUP BY kind";

/// Adds an empty backlog for each kind without jobs, so that its gauge returns to 0.
fn of_all_kinds(app: &App, mut jobs: Vec<Backlog>) -> Vec<Backlog> {
    let is_missing = |kind: &&str| jobs.iter().all(|(seen, ..)| seen != kind);
    let missing: Vec<&str> = app.workers.kinds().filter(is_missing).collect();
    jobs.extend(missing.into_iter().map(|kind| (kind.to_owned(), 0, None)));
    jobs
}

/// Event deliveries that were never attempted, and those that failed and will be retried.
const PENDING_DELIVERIES: &str = "
    SELECT 'no', COUNT(*), MIN(created_at) FROM (
        SELECT created_at FROM event_deliveries WHERE state = 'pending' AND attempts = 0
        ORDER BY created_at LIMIT $1) untried
    UNION ALL SELECT 'yes', COUNT(*), MIN(created_at) FROM (
        SELECT created_at FROM event_deliveries WHERE state = 'pending' AND attempts > 0
        ORDER BY created_at LIMIT $1) retried";

/// Charges of cards and mandates with an unknown outcome, by channel.
const PENDING_CHARGES: &str = "
    SELECT payment_channel, COUNT(*), MIN(created_at) FROM (
        SELECT payment_channel, created_at FROM recollections
        WHERE status = 'pending' AND payment_channel IN ('card', 'direct_debit')
        ORDER BY created_at LIMIT $1) pending
    GROUP BY payment_channel";

const OPEN_REFUNDS: &str = "
    SELECT state, COUNT(*), MIN(created_at) FROM (
        SELECT state, created_at FROM charge_refunds
        WHERE state IN ('requested', 'pending', 'stalled')
        ORDER BY created_at LIMIT $1) open
    GROUP BY state";

const OPEN_EXCEPTIONS: &str = "
    SELECT kind, COUNT(*), MIN(created_at) FROM (
        SELECT kind, created_at FROM exceptions WHERE state = 'open' ORDER BY id LIMIT $1) open
    GROUP BY kind";

const QUEUED_MESSAGES: &str = "
    SELECT channel, COUNT(*), MIN(created_at) FROM (
        SELECT channel, created_at FROM messages WHERE state = 'pending'
        ORDER BY created_at LIMIT $1) waiting
    GROUP BY channel";

/// Counts pending payments by age bracket. Verification ends at the upper bound of the last one.
async fn pending_payments(tx: &mut Tx, now: Timestamp) -> Result<Vec<Backlog>> {
    let begin = |hours: i64| now.plus_seconds(-3_600 * hours);
    tx.sql(
        "SELECT age, COUNT(*), MIN(created_at) FROM (
             SELECT created_at, CASE WHEN created_at > $1 THEN '5m' WHEN created_at > $2 THEN '1h'
                 WHEN created_at > $3 THEN '24h' ELSE '72h' END AS age
             FROM payments WHERE status = 'pending' AND created_at > $4
             ORDER BY created_at DESC LIMIT $5) pending
         GROUP BY age",
    )
    .params(params![now.plus_seconds(-300), begin(1), begin(24), begin(72), 10 * MAX_COUNT])
    .all()
    .await
}

/// Returns the sum of the absolute imbalances of all ledgers, by currency.
pub async fn imbalance(tx: &mut Tx) -> Result<Vec<(String, i64)>> {
    tx.sql(
        "SELECT currency, CAST(SUM(ABS(off)) AS BIGINT) FROM (
             SELECT company_id, currency, SUM(amount_minor) AS off FROM ledger_account_balances
             GROUP BY company_id, currency) books
         GROUP BY currency",
    )
    .all()
    .await
}

/// A ledger that does not sum to zero.
#[derive(Clone, Debug, PartialEq, Eq, FromRow)]
pub struct UnbalancedLedger {
    pub company_id: CompanyId,
    pub currency: Currency,
    pub minor: i64,
}

/// Returns up to 20 unbalanced ledgers.
pub async fn unbalanced_ledgers(tx: &mut Tx) -> Result<Vec<UnbalancedLedger>> {
    tx.sql(
        "SELECT company_id, currency, CAST(SUM(amount_minor) AS BIGINT) AS minor
         FROM ledger_account_balances GROUP BY company_id, currency
         HAVING SUM(amount_minor) <> 0 ORDER BY company_id LIMIT 20",
    )
    .all()
    .await
}

/// Returns the next company that has a ledger.
pub async fn next_ledger(tx: &mut Tx, after: &str) -> Result<Option<CompanyId>> {
    tx.sql("SELECT MIN(company_id) FROM ledger_transactions WHERE company_id > $1")
        .bind(after)
        .value()
        .await
}

/// A ledger transaction with an amount.
#[derive(Clone, Debug, FromRow)]
pub struct ScannedTransaction {
    pub id: String,
    pub debit: String,
    pub credit: String,
    pub currency: Currency,
    pub amount_minor: i64,
}

/// Returns a page of ledger transactions in the order of their ids, between two exclusive ids.
pub async fn page(
    tx: &mut Tx,
    company_id: &CompanyId,
    after: &str,
    before: &str,
    limit: i64,
) -> Result<Vec<ScannedTransaction>> {
    tx.sql(
        "SELECT id, debit, credit, currency, amount_minor FROM ledger_transactions
         WHERE company_id = $1 AND id > $2 AND id < $3 AND amount_minor > 0
         ORDER BY id LIMIT $4",
    )
    .params(params![company_id, after, before, limit])
    .all()
    .await
}

/// Account, currency and amount.
pub type AccountSum = (String, Currency, i64);

pub async fn balances(tx: &mut Tx, company_id: &CompanyId) -> Result<Vec<AccountSum>> {
    tx.sql(
        "SELECT account, currency, amount_minor FROM ledger_account_balances WHERE company_id = $1",
    )
    .bind(company_id)
    .all()
    .await
}

/// Returns the sums of a ledger's entries from a transaction on; all entries if `from` is empty.
pub async fn sums(tx: &mut Tx, company_id: &CompanyId, from: &str) -> Result<Vec<AccountSum>> {
    tx.sql(
        "SELECT account, currency, CAST(SUM(amount_minor) AS BIGINT) FROM ledger_entries
         WHERE company_id = $1 AND transaction_id >= $2 GROUP BY account, currency",
    )
    .params(params![company_id, from])
    .all()
    .await
}

/// Counts the records of all companies that need a plugin, by description.
pub async fn plugin_uses(tx: &mut Tx, plugin: &str) -> Result<Vec<(String, i64)>> {
    tx.sql(
        "SELECT 'pending payments', COUNT(*) FROM payments
             WHERE payment_service = $1 AND status = 'pending'
         UNION ALL SELECT 'pending repayments', COUNT(*) FROM recollections
             WHERE payment_service = $1 AND status = 'pending'
         UNION ALL SELECT 'pending refunds', COUNT(*) FROM charge_refunds r
             JOIN charges c ON c.company_id = r.company_id AND c.id = r.charge_id
             WHERE c.provider = $1 AND r.state IN ('requested', 'pending', 'stalled')
                 AND r.cause <> 'verification'
         UNION ALL SELECT 'saved cards', COUNT(*) FROM cards
             WHERE payment_service = $1 AND status IN ('pending', 'valid') AND removed_at IS NULL
         UNION ALL SELECT 'deleted cards with unrevoked tokens', COUNT(*) FROM cards
             WHERE payment_service = $1 AND removed_at IS NOT NULL AND token IS NOT NULL
         UNION ALL SELECT 'pending refunds of verification charges', COUNT(*) FROM charge_refunds r
             JOIN charges c ON c.company_id = r.company_id AND c.id = r.charge_id
             WHERE c.provider = $1 AND r.state IN ('requested', 'pending', 'stalled')
                 AND r.cause = 'verification'
         UNION ALL SELECT 'direct debits', COUNT(*) FROM direct_debits
             WHERE payment_service = $1 AND active
         UNION ALL SELECT 'accounts with credentials', COUNT(*) FROM provider_accounts
             WHERE provider = $1 AND credentials IS NOT NULL",
    )
    .bind(plugin)
    .all()
    .await
}
