//! Sums of charges, and counts of payments.

use crate::state::storage::*;
use tollhouse_platform::values::listing::Period;

/// The field by which totals are grouped.
#[derive(Clone, Copy)]
pub enum Dimension {
    Day,
    Provider,
    Company,
}

impl Dimension {
    /// Returns the dimension with this name; otherwise days.
    pub fn named(name: &str) -> Dimension {
        match name {
            "provider" => Dimension::Provider,
            "company" => Dimension::Company,
            _ => Dimension::Day,
        }
    }
}

/// Money that was taken in one currency.
#[derive(Debug, FromRow, Serialize, JsonSchema)]
pub struct TakenTotals {
    #[serde(flatten)]
    #[sqlx(flatten)]
    pub group: Group,
    /// `payment` or `recollection`.
    pub kind: String,
    pub currency: Currency,
    /// Number of charges.
    pub number: i64,
    #[sqlx(rename = "taken_minor")]
    pub amount: Minor,
    /// Provider fees.
    #[sqlx(rename = "fees_minor")]
    pub fees: Minor,
    /// Amount refunded by the service.
    #[sqlx(rename = "refunded_minor")]
    pub refunded: Minor,
    /// Amount taken back by providers.
    #[sqlx(rename = "reversed_minor")]
    pub reversed: Minor,
    /// Amount of open and lost disputes, excluding those of reversed charges.
    #[sqlx(rename = "disputed_minor")]
    pub disputed: Minor,
}

/// The group of a total. The fields of other dimensions are `null`.
#[derive(Debug, FromRow, Serialize, JsonSchema)]
pub struct Group {
    /// The first instant of a day in UTC.
    pub day: Option<Timestamp>,
    pub provider: Option<String>,
    /// Id of a company.
    pub company: Option<CompanyId>,
}

/// Numbers of payments by status.
#[derive(Debug, FromRow, Serialize, JsonSchema)]
pub struct PaymentTotals {
    #[serde(flatten)]
    #[sqlx(flatten)]
    pub group: Group,
    /// The channel that payers used, if the totals are by provider; otherwise `null`. Empty if the
    /// channel is unknown.
    pub channel: Option<String>,
    pub pending: i64,
    pub failed: i64,
    /// Including refunded ones.
    pub succeeded: i64,
    pub refunded: i64,
}

/// Automatic collections in one currency.
#[derive(Debug, FromRow, Serialize, JsonSchema)]
pub struct CollectionTotals {
    pub currency: Currency,
    /// Number of installments.
    pub due: i64,
    pub recovered: i64,
    pub pending: i64,
    /// Installments that were not charged, for example without a card.
    pub not_charged: i64,
    #[sqlx(rename = "charged_minor")]
    pub charged_amount: Minor,
    #[sqlx(rename = "recovered_minor")]
    pub recovered_amount: Minor,
}

/// Sums the collections of all companies that began since a time.
pub async fn collections_since(tx: &mut Tx, from: Timestamp) -> Result<Vec<CollectionTotals>> {
    tx.sql(
        "SELECT l.currency, COUNT(*) AS due,
             COUNT(CASE WHEN r.status = 'success' THEN 1 END) AS recovered,
             COUNT(CASE WHEN r.status = 'pending' THEN 1 END) AS pending,
             COUNT(CASE WHEN c.recollection_id IS NULL THEN 1 END) AS not_charged,
             CAST(COALESCE(SUM(r.amount_minor), 0) AS BIGINT) AS charged_minor,
             CAST(COALESCE(SUM(CASE WHEN r.status = 'success' THEN r.amount_minor END), 0)
                 AS BIGINT) AS recovered_minor
         FROM collections c
             JOIN loans l ON l.company_id = c.company_id AND l.id = c.loan_id
             LEFT JOIN recollections r
                 ON r.company_id = c.company_id AND r.id = c.recollection_id
         WHERE c.created_at >= $1 GROUP BY l.currency ORDER BY l.currency",
    )
    .params(params![from])
    .all()
    .await
}

/// The columns of a group, of which two are `NULL`.
macro_rules! group {
    (day $day:literal) => {
        concat!($day, " AS day, CAST(NULL AS TEXT) AS provider, CAST(NULL AS TEXT) AS company, ")
    };
    (provider $provider:literal) => {
        concat!(
            "CAST(NULL AS BIGINT) AS day, ",
            $provider,
            " AS provider, CAST(NULL AS TEXT) AS company, "
        )
    };
    (company $company:literal) => {
        concat!(
            "CAST(NULL AS BIGINT) AS day, CAST(NULL AS TEXT) AS provider, ",
            $company,
            " AS company, "
        )
    };
}

/// Sums the charges that settled payments and recollections.
pub async fn taken(
    tx: &mut Tx,
    dimension: Dimension,
    period: Period,
    company: Option<&CompanyId>,
) -> Result<Vec<TakenTotals>> {
    let group = match dimension {
        Dimension::Day => group!(day "c.settled_at - c.settled_at % 86400000"),
        Dimension::Provider => group!(provider "c.provider"),
        Dimension::Company => group!(company "c.company_id"),
    };
    let sql = DynamicStatement::from("SELECT ")
        .append(group)
        .append(
            "c.owner_kind AS kind, c.taken_currency AS currency, COUNT(*) AS number,
                 CAST(SUM(c.taken_minor) AS BIGINT) AS taken_minor,
                 CAST(SUM(COALESCE(p.fees_minor, r.fees_minor, 0)) AS BIGINT) AS fees_minor,
                 CAST(SUM(c.refunded_minor) AS BIGINT) AS refunded_minor,
                 CAST(SUM(CASE WHEN c.state = 'reversed' THEN c.taken_minor - c.refunded_minor
                     ELSE 0 END) AS BIGINT) AS reversed_minor,
                 CAST(SUM(CASE WHEN c.state = 'reversed' THEN 0 ELSE c.disputed_minor END) AS BIGINT)
                     AS disputed_minor
             FROM charges c LEFT JOIN payments p
                 ON c.owner_kind = 'payment' AND p.company_id = c.company_id AND p.id = c.owner_id
             LEFT JOIN recollections r ON c.owner_kind = 'recollection'
                 AND r.company_id = c.company_id AND r.id = c.owner_id
             WHERE c.counts AND c.owner_kind <> 'card' AND c.settled_at >= ",
        )
        .bind(period.from)
        .append(" AND c.settled_at < ")
        .bind(period.before)
        .append_if(" AND c.company_id = ", company)
        .append(" GROUP BY 1, 2, 3, 4, 5 ORDER BY 1, 2, 3, 4, 5");
    tx.dynamic(&sql).all().await
}

/// Counts payments, from the precomputed totals of the list of payments.
pub async fn payments(
    tx: &mut Tx,
    dimension: Dimension,
    period: Period,
    company: Option<&CompanyId>,
) -> Result<Vec<PaymentTotals>> {
    let group = match dimension {
        Dimension::Day => group!(day "day"),
        Dimension::Provider => group!(provider "payment_service"),
        Dimension::Company => group!(company "company_id"),
    };
    let channel = match dimension {
        Dimension::Provider => "payment_channel AS channel, ",
        Dimension::Day | Dimension::Company => "CAST(NULL AS TEXT) AS channel, ",
    };
    let sql = DynamicStatement::from("SELECT ")
        .append(group)
        .append(channel)
        .append(
            "CAST(SUM(CASE WHEN status = 'pending' THEN number ELSE 0 END) AS BIGINT) AS pending,
             CAST(SUM(CASE WHEN status = 'failed' THEN number ELSE 0 END) AS BIGINT) AS failed,
             CAST(SUM(CASE WHEN status IN ('success', 'refunded') THEN number ELSE 0 END) AS BIGINT)
                 AS succeeded,
             CAST(SUM(CASE WHEN status = 'refunded' THEN number ELSE 0 END) AS BIGINT) AS refunded
             FROM list_totals WHERE list = 'payments' AND day >= ",
        )
        .bind(period.from)
        .append(" AND day < ")
        .bind(period.before)
        .append_if(" AND company_id = ", company)
        .append(" GROUP BY 1, 2, 3, 4 HAVING SUM(number) <> 0 ORDER BY 1, 2, 3, 4");
    tx.dynamic(&sql).all().await
}

/// Returns the number of pending payments of all companies created at `before` or earlier.
pub async fn pending_since(tx: &mut Tx, before: Timestamp) -> Result<i64> {
    tx.sql("SELECT COUNT(*) FROM payments WHERE status = 'pending' AND created_at <= $1")
        .bind(before)
        .value()
        .await
}

/// A wallet whose balance is below its threshold.
#[derive(Debug, FromRow, Serialize, JsonSchema)]
pub struct LowWallet {
    pub company: CompanyId,
    pub company_name: String,
    #[sqlx(rename = "balance_minor")]
    pub balance: Minor,
    #[sqlx(rename = "threshold_minor")]
    pub threshold: Minor,
    pub currency: Currency,
}

/// Returns the wallets of active companies below their threshold, or below `default` for companies
/// without one, lowest first. A threshold of zero disables the check.
pub async fn low_wallets(tx: &mut Tx, default: Minor, limit: i64) -> Result<Vec<LowWallet>> {
    tx.sql(
        "SELECT c.id AS company, c.name AS company_name,
             CAST(COALESCE(b.amount_minor, 0) AS BIGINT) AS balance_minor,
             COALESCE(c.low_balance_minor, $2) AS threshold_minor,
             CAST($1 AS TEXT) AS currency
         FROM companies c LEFT JOIN ledger_account_balances b
             ON b.company_id = c.id AND b.account = 'wallet' AND b.currency = $1
         WHERE c.active AND COALESCE(c.low_balance_minor, $2) > 0
             AND COALESCE(b.amount_minor, 0) < COALESCE(c.low_balance_minor, $2)
         ORDER BY 3, 1 LIMIT $3",
    )
    .params(params![BILLING_CURRENCY, default, limit])
    .all()
    .await
}
