//! Storage of collection policies, and of the attempts and reports that follow from them.

use super::{
    decide::{Attempt, AttemptOutcome, InstrumentId, Reason},
    policy::Policy,
};
use crate::{
    customers::UserKey,
    lending::{
        loans::{Allocation, Loan, LoanId},
        mandates::MandateId,
        recollections::{InstallmentKey, RecollectionId, Status},
    },
    money::cards::CardId,
    state::storage::*,
};
use tollhouse_plugins::Decline;

/// A version of a company's policy.
#[derive(Clone, Debug, FromRow, Serialize, JsonSchema)]
#[schemars(rename = "CollectionPolicyVersion")]
pub struct PolicyVersion {
    /// Version number, counted from 1. A version never changes.
    pub version: i64,
    #[schemars(with = "Policy")]
    pub policy: Json<Policy>,
    /// Name of the operator who created the version.
    pub changed_by: String,
    pub created_at: Timestamp,
}

/// Returns the latest version of a company's policy.
pub async fn find_latest(tx: &mut Tx, company_id: &CompanyId) -> Result<Option<PolicyVersion>> {
    tx.sql(
        "SELECT version, policy, changed_by, created_at FROM collection_policies
         WHERE company_id = $1 ORDER BY version DESC LIMIT 1",
    )
    .bind(company_id)
    .optional()
    .await
}

/// Returns the latest versions of a company's policy, newest first.
pub async fn list_versions(
    tx: &mut Tx,
    company_id: &CompanyId,
    most: i64,
) -> Result<Vec<PolicyVersion>> {
    tx.sql(
        "SELECT version, policy, changed_by, created_at FROM collection_policies
         WHERE company_id = $1 ORDER BY version DESC LIMIT $2",
    )
    .params(params![company_id, most])
    .all()
    .await
}

pub async fn insert_version(
    tx: &mut Tx,
    company_id: &CompanyId,
    new: &PolicyVersion,
) -> Result<()> {
    tx.sql(
        "INSERT INTO collection_policies (company_id, version, policy, changed_by, created_at)
         VALUES ($1, $2, $3, $4, $5)",
    )
    .params(params![company_id, new.version, &new.policy, &new.changed_by, new.created_at])
    .execute()
    .await
}

/// Returns up to `most` loans with an outstanding amount whose ids follow `after`.
pub async fn list_outstanding(
    tx: &mut Tx,
    company_id: &CompanyId,
    after: &str,
    most: i64,
) -> Result<Vec<LoanId>> {
    tx.sql(
        "SELECT id FROM loans WHERE company_id = $1 AND id > $2 AND disbursed
             AND amount_paid_minor < amount_minor
         ORDER BY id LIMIT $3",
    )
    .params(params![company_id, after, most])
    .values()
    .await
}

/// An attempt to record.
#[derive(Debug)]
pub struct NewAttempt<'a> {
    pub key: InstallmentKey,
    /// Position among the attempts for the installment, from 1.
    pub attempt: i64,
    pub recollection_id: &'a RecollectionId,
    pub policy_version: i64,
    pub day: i64,
    pub reason: Reason,
    pub fee: Minor,
}

/// Inserts an attempt. The transaction fails if the installment has one with this number.
pub async fn insert_attempt(
    tx: &mut Tx,
    loan: &Loan,
    new: &NewAttempt<'_>,
    now: Timestamp,
) -> Result<()> {
    let (number, due_at) = new.key;
    tx.sql(
        "INSERT INTO collection_attempts (company_id, loan_id, number, due_at, attempt,
             recollection_id, policy_version, day, reason, fee_minor, created_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)",
    )
    .params(params![
        &loan.company_id, &loan.id, number, due_at, new.attempt, new.recollection_id,
        new.policy_version, new.day, new.reason, new.fee, now
    ])
    .execute()
    .await
}

/// Returns whether a recollection is an attempt by a policy.
pub async fn is_attempt(
    tx: &mut Tx,
    company_id: &CompanyId,
    recollection_id: &RecollectionId,
) -> Result<bool> {
    tx.sql(
        "SELECT EXISTS (SELECT 1 FROM collection_attempts
             WHERE company_id = $1 AND recollection_id = $2)",
    )
    .params(params![company_id, recollection_id])
    .value()
    .await
}

/// An attempt with the outcome of its recollection.
#[derive(Debug, FromRow)]
pub struct HistoryRow {
    pub number: i64,
    pub due_at: Timestamp,
    #[sqlx(rename = "fee_minor")]
    fee: Minor,
    created_at: Timestamp,
    card_id: Option<CardId>,
    direct_debit_id: Option<MandateId>,
    status: Status,
    decline: Option<Decline>,
    updated_at: Timestamp,
    applied: Option<Json<Vec<Allocation>>>,
    unsure: bool,
}

impl HistoryRow {
    pub fn key(&self) -> InstallmentKey {
        (self.number, self.due_at)
    }

    pub fn attempt(self) -> Attempt {
        let instrument = match (self.card_id, self.direct_debit_id) {
            (Some(card), _) => Some(InstrumentId::Card(card)),
            (None, Some(mandate)) => Some(InstrumentId::Mandate(mandate)),
            (None, None) => None,
        };
        let outcome = match self.status {
            Status::Pending => AttemptOutcome::Pending,
            Status::Success => AttemptOutcome::Repaid,
            Status::Failed if self.applied.is_some() => AttemptOutcome::Returned,
            Status::Failed => {
                // A request without a response, of which the provider has no record.
                let is_lost = self.unsure && self.decline.is_none();
                let later = if is_lost { Attempt::LOST_MS } else { 0 };
                let certain_at = self.updated_at.plus_ms(later);
                AttemptOutcome::Failed { decline: self.decline, certain_at }
            }
        };
        Attempt { instrument, at: self.created_at, fee: self.fee, outcome }
    }
}

/// Selects attempts with the outcomes of their recollections, oldest first, including those made
/// without a policy. `$filter` applies to installments.
macro_rules! select_outcomes {
    ($columns:literal, $filter:literal) => {
        concat!(
            "SELECT a.number, a.due_at, a.fee_minor, a.created_at, r.card_id, r.direct_debit_id,
                 r.status, r.decline, r.updated_at, r.applied,
                 COALESCE(c.unsure, FALSE) AS unsure",
            $columns,
            " FROM (
                 SELECT number, due_at, recollection_id, fee_minor, created_at
                 FROM collection_attempts WHERE company_id = $1 AND ",
            $filter,
            " UNION ALL
                 SELECT number, due_at, recollection_id, 0, created_at
                 FROM collections o WHERE company_id = $1 AND ",
            $filter,
            " AND NOT EXISTS (
                     SELECT 1 FROM collection_attempts k WHERE k.company_id = o.company_id
                         AND k.recollection_id = o.recollection_id)
             ) a
             JOIN recollections r ON r.company_id = $1 AND r.id = a.recollection_id
             LEFT JOIN charges c ON c.company_id = $1 AND c.id = r.charge_id
             ORDER BY a.created_at, r.id"
        )
    };
}

/// Returns the attempts to collect the installments of a loan, oldest first, including those made
/// without a policy.
pub async fn history(
    tx: &mut Tx,
    company_id: &CompanyId,
    loan_id: &LoanId,
) -> Result<Vec<HistoryRow>> {
    tx.sql(select_outcomes!("", "loan_id = $2")).params(params![company_id, loan_id]).all().await
}

/// An attempt with its loan and its amounts.
#[derive(Debug, FromRow)]
pub struct OutcomeRow {
    pub loan_id: LoanId,
    /// The amount that was taken, if the attempt succeeded.
    #[sqlx(rename = "amount_minor")]
    pub taken: Minor,
    #[sqlx(rename = "requested_minor")]
    pub requested: Minor,
    #[sqlx(flatten)]
    pub history: HistoryRow,
}

/// Returns the attempts to collect installments that were due in a period, oldest first.
pub async fn list_outcomes(
    tx: &mut Tx,
    company_id: &CompanyId,
    from: Timestamp,
    until: Timestamp,
) -> Result<Vec<OutcomeRow>> {
    tx.sql(select_outcomes!(
        ", r.loan_id, r.amount_minor, COALESCE(c.amount_minor, r.amount_minor) AS requested_minor",
        "due_at >= $2 AND due_at < $3"
    ))
    .params(params![company_id, from, until])
    .all()
    .await
}

/// An installment that was due.
#[derive(Debug, FromRow)]
pub struct PastInstallment {
    pub loan_id: LoanId,
    pub due_at: Timestamp,
    #[sqlx(rename = "amount_minor")]
    pub amount: Minor,
    pub currency: Currency,
    pub user_key: UserKey,
    pub country_code: Option<String>,
}

/// Returns the latest installments that were due in a period and are collected automatically; those
/// of the same loan and due date are in the order of their numbers.
pub async fn list_past(
    tx: &mut Tx,
    company_id: &CompanyId,
    from: Timestamp,
    until: Timestamp,
    most: i64,
) -> Result<Vec<PastInstallment>> {
    tx.sql(
        "SELECT e.loan_id, e.due_at, e.amount_minor, l.currency, l.user_key, u.country_code
         FROM loan_entries e
         JOIN loans l ON l.company_id = e.company_id AND l.id = e.loan_id
         LEFT JOIN users u ON u.company_id = l.company_id AND u.id = l.user_key
         WHERE e.company_id = $1 AND e.due_at >= $2 AND e.due_at < $3 AND e.automatic
             AND l.disbursed
         ORDER BY e.due_at DESC, e.loan_id, e.number LIMIT $4",
    )
    .params(params![company_id, from, until, most])
    .all()
    .await
}

/// A card or mandate that can be charged today.
#[derive(Debug, FromRow)]
pub struct UserInstrument {
    pub user_key: UserKey,
    pub id: String,
    pub currency: Currency,
    pub is_card: bool,
    pub is_default: bool,
}

/// Returns the instruments of users with installments that were due in a period: cards, newest
/// first, then mandates.
pub async fn list_instruments(
    tx: &mut Tx,
    company_id: &CompanyId,
    from: Timestamp,
    until: Timestamp,
) -> Result<Vec<UserInstrument>> {
    tx.sql(
        "WITH owed AS (
             SELECT DISTINCT l.user_key FROM loan_entries e
             JOIN loans l ON l.company_id = e.company_id AND l.id = e.loan_id
             WHERE e.company_id = $1 AND e.due_at >= $2 AND e.due_at < $3)
         SELECT c.user_key, c.id, c.currency, TRUE AS is_card, c.is_default, c.created_at
         FROM owed JOIN cards c ON c.company_id = $1 AND c.user_key = owed.user_key
         WHERE c.removed_at IS NULL AND c.status = 'valid'
         UNION ALL
         SELECT d.user_key, d.id, d.currency, FALSE, d.is_default, d.created_at
         FROM owed JOIN direct_debits d ON d.company_id = $1 AND d.user_key = owed.user_key
         WHERE d.active
         ORDER BY 4 DESC, 5 DESC, 6 DESC, 2 DESC",
    )
    .params(params![company_id, from, until])
    .all()
    .await
}

/// An attempt by a policy, for operators.
#[derive(Clone, Debug, FromRow, Serialize, JsonSchema)]
#[schemars(rename = "CollectionAttempt")]
pub struct AttemptView {
    recollection: RecollectionId,
    /// The due date of the installment.
    #[serde(rename = "due_date")]
    due_at: Timestamp,
    /// Position among the attempts of the installment, from 1.
    attempt: i64,
    policy_version: i64,
    /// The day of the policy, as a number of days after the due date.
    day: i64,
    reason: Reason,
    payment_channel: String,
    #[sqlx(rename = "amount_minor")]
    amount: Minor,
    #[sqlx(rename = "fee_minor")]
    fee: Minor,
    status: Status,
    /// Why the charge was declined; absent if it was not, or if the plugin does not report it.
    #[serde(skip_serializing_if = "Option::is_none")]
    decline: Option<Decline>,
    created_at: Timestamp,
}

/// Returns the latest attempts of a loan, newest first.
pub async fn list_attempts(
    tx: &mut Tx,
    company_id: &CompanyId,
    loan_id: &LoanId,
    most: i64,
) -> Result<Vec<AttemptView>> {
    tx.sql(
        "SELECT r.id AS recollection, a.due_at, a.attempt, a.policy_version, a.day, a.reason,
             r.payment_channel, r.amount_minor, a.fee_minor, r.status, r.decline, a.created_at
         FROM collection_attempts a
         JOIN recollections r ON r.company_id = a.company_id AND r.id = a.recollection_id
         WHERE a.company_id = $1 AND a.loan_id = $2
         ORDER BY a.created_at DESC, a.due_at DESC, a.number DESC, a.attempt DESC LIMIT $3",
    )
    .params(params![company_id, loan_id, most])
    .all()
    .await
}

/// Returns the reports about a loan: number and due date of the installment, and kind.
pub async fn list_reports(
    tx: &mut Tx,
    company_id: &CompanyId,
    loan_id: &LoanId,
) -> Result<Vec<(i64, Timestamp, String)>> {
    tx.sql(
        "SELECT number, due_at, kind FROM installment_reports
         WHERE company_id = $1 AND loan_id = $2",
    )
    .params(params![company_id, loan_id])
    .all()
    .await
}

/// Returns since when the company's policy has requested these events, across versions.
pub async fn events_since(
    tx: &mut Tx,
    company_id: &CompanyId,
    version: &PolicyVersion,
) -> Result<Timestamp> {
    // The number of versions is small: people change policies.
    let versions = list_versions(tx, company_id, version.version).await?;
    let same = |one: &&PolicyVersion| one.policy.events == version.policy.events;
    let first = versions.iter().take_while(same).last();
    Ok(first.map_or(version.created_at, |first| first.created_at))
}

/// Records a report about an installment. Returns `false` if it already was recorded.
pub async fn insert_report(
    tx: &mut Tx,
    loan: &Loan,
    (number, due_at): InstallmentKey,
    kind: &str,
    now: Timestamp,
) -> Result<bool> {
    tx.sql(
        "INSERT INTO installment_reports (company_id, loan_id, number, due_at, kind, created_at)
         VALUES ($1, $2, $3, $4, $5, $6)
         ON CONFLICT (company_id, loan_id, number, due_at, kind) DO NOTHING",
    )
    .params(params![&loan.company_id, &loan.id, number, due_at, kind, now])
    .affects_one()
    .await
}
