//! Queries across all companies, for operators only. Each reads an index, most of them once per
//! company.

use super::amount::SearchAmount;
use crate::state::storage::*;

/// Maximum number of results.
pub const MAX_RESULTS: usize = 50;
/// Maximum number of payments, and of recollections, with the same amount.
const MAX_OF_AMOUNT: i64 = 20;
/// Number of records with an amount among which those in a currency are searched.
const MAX_SCANNED: i64 = 1_000;

/// The text that a person entered.
#[derive(Debug)]
pub struct SearchTerm {
    pub text: String,
    /// The text in the form in which e-mail addresses are compared.
    pub email: String,
    /// The text as an amount.
    pub amount: Option<SearchAmount>,
    /// Whether the text may be the id of a request in an audit log.
    pub in_audit_logs: bool,
    /// The same in an API log.
    pub in_api_logs: bool,
}

/// A matching record.
#[derive(Debug, FromRow, Serialize, JsonSchema)]
pub struct SearchResult {
    /// `company`, `user`, `payment`, `recollection`, `audit_entry` or `api_request`.
    pub kind: String,
    /// Id of the company; empty for an entry of the service's audit log.
    pub company: CompanyId,
    pub company_name: String,
    pub id: String,
    /// Name of a company, the `user_id` of a user, the reference of a payment or recollection, the
    /// action of an entry of an audit log, method and route of an API request.
    pub title: String,
    /// State of a payment or recollection, status of an API request; otherwise empty.
    pub state: String,
    pub created_at: Timestamp,
}

const COMPANIES: &str = "
    SELECT 'company' AS kind, c.id AS company, c.name AS company_name, c.id, c.name AS title,
        '' AS state, c.created_at
    FROM companies c WHERE c.id = $1 OR LOWER(c.name) = LOWER($1) LIMIT $2";

/// A statement on users by one column. `u` is the user.
macro_rules! users_by {
    ($column:literal) => {
        concat!(
            "SELECT 'user' AS kind, c.id AS company, c.name AS company_name, u.id,
                 u.user_id AS title, '' AS state, u.created_at
             FROM companies c JOIN users u ON u.company_id = c.id AND ",
            $column,
            " = $1 LIMIT $2",
        )
    };
}

/// A statement on payments. `p` is the payment, `c` its company.
macro_rules! payments {
    ($from:literal) => {
        concat!(
            "SELECT 'payment' AS kind, c.id AS company, c.name AS company_name, p.id,
                 p.reference AS title, p.status AS state, p.created_at ",
            $from,
        )
    };
}

/// A statement on recollections. `r` is the recollection, `c` its company.
macro_rules! recollections {
    ($from:literal) => {
        concat!(
            "SELECT 'recollection' AS kind, c.id AS company, c.name AS company_name, r.id,
                 r.reference AS title, r.status AS state, r.created_at ",
            $from,
        )
    };
}

/// Statements on records by one column each.
const BY_TEXT: [&str; 7] = [
    users_by!("u.id"),
    users_by!("u.user_id"),
    users_by!("u.phone"),
    payments!("FROM companies c JOIN payments p ON p.company_id = c.id AND p.id = $1 LIMIT $2"),
    payments!(
        "FROM companies c JOIN payments p ON p.company_id = c.id AND p.reference = $1 LIMIT $2"
    ),
    payments!(
        "FROM provider_accounts a
         JOIN service_refs s ON s.account_id = a.id AND s.service_ref = $1
         JOIN companies c ON c.id = s.company_id
         JOIN payments p ON p.company_id = c.id AND p.id = s.subject_id
         WHERE s.subject = 'payment' LIMIT $2"
    ),
    recollections!(
        "FROM companies c JOIN recollections r ON r.company_id = c.id AND r.reference = $1 LIMIT $2"
    ),
];

/// Statements on records by their amount: of the newest ones with the amount, those in the
/// currency. Most records may have the same few amounts, so an index across all companies bounds
/// the scan.
const BY_AMOUNT: [&str; 2] = [
    payments!(
        "FROM (SELECT * FROM payments WHERE amount_minor = $1 ORDER BY created_at DESC LIMIT $2) p
         JOIN companies c ON c.id = p.company_id WHERE $3 IN ('', p.currency)
         ORDER BY p.created_at DESC LIMIT $4"
    ),
    recollections!(
        "FROM (SELECT * FROM recollections WHERE amount_minor = $1
               ORDER BY created_at DESC LIMIT $2) r
         JOIN companies c ON c.id = r.company_id WHERE $3 IN ('', r.currency)
         ORDER BY r.created_at DESC LIMIT $4"
    ),
];

/// Requests to the API by their id.
const API_REQUESTS: &str = "
    SELECT 'api_request' AS kind, c.id AS company, c.name AS company_name, q.id,
        q.method || ' ' || q.route AS title, CAST(q.status AS TEXT) AS state, q.created_at
    FROM companies c JOIN api_requests q ON q.company_id = c.id AND q.request_id = $1
    ORDER BY q.created_at DESC LIMIT $2";

/// Statements by the id of a request to the internal interface: the audit log's entries, and the
/// payments that they name. No other record has the id of its request.
const BY_REQUEST: [&str; 2] = [
    "SELECT 'audit_entry' AS kind, a.company_id AS company, COALESCE(c.name, '') AS company_name,
         a.id, a.action AS title, '' AS state, a.created_at
     FROM audit_log a LEFT JOIN companies c ON c.id = a.company_id
     WHERE a.request_id = $1 ORDER BY a.created_at DESC, a.number DESC LIMIT $2",
    payments!(
        "FROM audit_log a
         JOIN companies c ON c.id = a.company_id
         JOIN payments p ON p.company_id = c.id AND p.id = a.detail ->> 'payment'
         WHERE a.request_id = $1 LIMIT $2"
    ),
];

/// Users by the last four digits of a saved card.
const USERS_BY_CARD: &str = "
    SELECT 'user' AS kind, c.id AS company, c.name AS company_name, u.id, u.user_id AS title,
        '' AS state, u.created_at
    FROM companies c
    JOIN cards k ON k.company_id = c.id AND k.last4 = $1 AND k.removed_at IS NULL
    JOIN users u ON u.company_id = c.id AND u.id = k.user_key LIMIT $2";

const USERS_BY_EMAIL: &str = users_by!("u.email_key");

const PAYMENTS_BY_EMAIL: &str = payments!(
    "FROM companies c JOIN payments p ON p.company_id = c.id AND p.email IN ($1, $2)
     ORDER BY p.created_at DESC LIMIT $3"
);

pub async fn find(tx: &mut Tx, term: &SearchTerm) -> Result<Vec<SearchResult>> {
    let SearchTerm { text, email, amount, in_audit_logs, in_api_logs } = term;
    let most = i64::try_from(MAX_RESULTS).unwrap_or(i64::MAX);
    if text.contains('@') {
        let mut found: Vec<SearchResult> =
            tx.sql(USERS_BY_EMAIL).params(params![email, most]).all().await?;
        found.extend::<Vec<SearchResult>>(
            tx.sql(PAYMENTS_BY_EMAIL).params(params![text, email, most]).all().await?,
        );
        return Ok(found);
    }
    let mut found: Vec<SearchResult> = tx.sql(COMPANIES).params(params![text, most]).all().await?;
    let is_card = text.len() == 4 && text.bytes().all(|byte| byte.is_ascii_digit());
    let by_text = BY_TEXT.into_iter().chain(is_card.then_some(USERS_BY_CARD));
    let by_request = BY_REQUEST.into_iter().filter(|_| *in_audit_logs);
    let by_request = by_request.chain(in_api_logs.then_some(API_REQUESTS));
    for statement in by_text.chain(by_request) {
        found.extend::<Vec<SearchResult>>(
            tx.sql(statement).params(params![text, most]).all().await?,
        );
    }
    if let Some(SearchAmount { amount, currency }) = amount {
        let currency = currency.as_ref().map_or("", |currency| currency);
        for statement in BY_AMOUNT {
            let params = params![*amount, MAX_SCANNED, currency, MAX_OF_AMOUNT];
            found.extend::<Vec<SearchResult>>(tx.sql(statement).params(params).all().await?);
        }
    }
    Ok(found)
}
