//! The rows of collection policies, and of what was attempted and reported by them.

use super::{
    decide::{Attempt, AttemptOutcome, InstrumentId, Reason},
    policy::Policy,
};
use crate::{
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
    /// From 1. A version never changes.
    pub version: i64,
    #[schemars(with = "Policy")]
    pub policy: Json<Policy>,
    /// The name of the operator.
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
    /// Position among those of the installment, from 1.
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
                // A request without a response, which the provider does not know.
                let is_lost = self.unsure && self.decline.is_none();
                let later = if is_lost { Attempt::LOST_MS } else { 0 };
                let certain_at = self.updated_at.plus_ms(later);
                AttemptOutcome::Failed { decline: self.decline, certain_at }
            }
        };
        Attempt { instrument, at: self.created_at, fee: self.fee, outcome }
    }
}

/// Returns the attempts to collect the installments of a loan, oldest first, with those of hosts
/// without a policy.
pub async fn history(
    tx: &mut Tx,
    company_id: &CompanyId,
    loan_id: &LoanId,
) -> Result<Vec<HistoryRow>> {
    tx.sql(
        "SELECT a.number, a.due_at, a.fee_minor, a.created_at, r.card_id, r.direct_debit_id,
             r.status, r.decline, r.updated_at, r.applied, COALESCE(c.unsure, FALSE) AS unsure
         FROM (
             SELECT number, due_at, recollection_id, fee_minor, created_at
             FROM collection_attempts WHERE company_id = $1 AND loan_id = $2
             UNION ALL
             SELECT number, due_at, recollection_id, 0, created_at
             FROM collections o WHERE company_id = $1 AND loan_id = $2 AND NOT EXISTS (
                 SELECT 1 FROM collection_attempts k WHERE k.company_id = o.company_id
                     AND k.recollection_id = o.recollection_id)
         ) a
         JOIN recollections r ON r.company_id = $1 AND r.id = a.recollection_id
         LEFT JOIN charges c ON c.company_id = $1 AND c.id = r.charge_id
         ORDER BY a.created_at, r.id",
    )
    .params(params![company_id, loan_id])
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
    /// The policy's day after the due date.
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

/// Returns the installments of a loan with what was reported about them.
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

/// Returns since when a company has wanted events, in whichever version.
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

/// Records that something was reported about an installment. Returns `false` if it already was.
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
