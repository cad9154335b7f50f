//! Exceptions: differences between records and their provider that an operator must resolve.
//!
//! One row per charge and kind. It is open until an operator resolves it with a reason, or until
//! the provider reports a success or a reversal. Exceptions of `reconciliation` have one row per
//! account, kind and subject instead, with or without a charge.

use serde::Deserialize;

use super::{Charge, ChargeId, OwnerKind};
use crate::money::prelude::*;
use tollhouse_platform::store::{
    DynamicStatement, EnumString, FromRow, IntoStaticStr, Json, Result, params, text_columns,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema, EnumString, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum ExceptionState {
    Open,
    Resolved,
}

text_columns!(ExceptionState);

/// An operator's note on an exception.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "ExceptionNote")]
pub struct Note {
    pub at: Timestamp,
    /// The name of the operator.
    pub by: String,
    pub text: String,
}

/// A difference between the service's records and a provider.
#[derive(Clone, Debug, FromRow, Serialize, JsonSchema)]
pub struct Exception {
    /// The id of the company; `null` for an exception of a service account whose charge is unknown.
    #[sqlx(rename = "company_id", try_from = "String")]
    #[serde(rename = "company")]
    pub owner: Owner,
    pub id: String,
    /// `amount_mismatch`, `currency_mismatch`, `paid_twice`, `repaid_twice`,
    /// `charge_without_an_owner`, `foreign_payment`, `unverified_charge`, `repayment_reversed`,
    /// `dispute_changed_after_its_end`, `dispute_won_after_a_reversal`,
    /// `dispute_in_another_currency`, `dispute_lost_after_a_refund` or `dispute_lost_in_part`.
    /// Reconciliation raises `payment_not_recorded`, `payment_amount_differs` and
    /// `payment_not_listed`, the same kinds with `refund` or `dispute` in place of `payment`,
    /// `fee_differs`, `settlement_differs` and `closed_day_changed`.
    pub kind: String,
    /// The charge, if it is known.
    #[serde(skip)]
    pub charge: Option<ChargeId>,
    /// The kind of record that owns the charge; `null` if unknown.
    pub owner_kind: Option<OwnerKind>,
    /// The id of the payment, card or recollection; `null` if unknown.
    pub owner_id: Option<String>,
    #[serde(rename = "payment_service")]
    pub provider: String,
    /// The provider's reference of the charge; empty if unknown.
    pub service_ref: String,
    /// Reconciliation only: the item that differs. `payment`, `refund`, `dispute` or `settlement`
    /// with the provider's id, or `record` with the id of the charge, refund or dispute that the
    /// provider does not list.
    pub subject: String,
    /// Reconciliation only: the start of the day (UTC) to which the difference belongs.
    pub day: Option<Timestamp>,
    /// The requested amount; for reconciliation, the recorded amount.
    #[sqlx(rename = "expected_minor")]
    pub expected: Minor,
    pub currency: Currency,
    /// The amount at the provider; `null` if unknown.
    #[sqlx(rename = "seen_minor")]
    pub seen: Option<Minor>,
    pub seen_currency: Option<Currency>,
    /// Reconciliation only: the recorded fees; `null` if unknown.
    #[sqlx(rename = "expected_fees_minor")]
    pub expected_fees: Option<Minor>,
    /// Reconciliation only: the listed fees; `null` if the list lacks them.
    #[sqlx(rename = "seen_fees_minor")]
    pub seen_fees: Option<Minor>,
    /// How much more money the provider has than the records say; negative if it has less.
    #[sqlx(rename = "excess_minor")]
    #[serde(skip)]
    pub excess: Minor,
    /// The part of `excess` that operators have assigned to the company or to the service.
    #[sqlx(rename = "decided_minor")]
    #[serde(skip)]
    pub decided: Minor,
    /// Reconciliation only: the net amount in `suspense`, about which an operator must decide;
    /// negative if the provider has less than the ledger.
    #[sqlx(rename = "suspense_minor")]
    pub suspense: Minor,
    /// Number of its ledger transactions.
    #[serde(skip)]
    pub postings: i64,
    /// Reconciliation only: the id of the provider account; otherwise empty.
    #[serde(rename = "account")]
    pub account_id: String,
    pub state: ExceptionState,
    /// The name of the operator to whom the exception is assigned.
    #[sqlx(rename = "owner")]
    #[serde(rename = "owner")]
    pub handler: Option<String>,
    /// Oldest first.
    #[schemars(with = "Vec<Note>")]
    pub notes: Json<Vec<Note>>,
    /// The reason for the resolution.
    pub reason: Option<String>,
    pub created_at: Timestamp,
    pub resolved_at: Option<Timestamp>,
}

impl Exception {
    /// Returns whether it is a difference from a provider's list.
    pub fn is_of_reconciliation(&self) -> bool {
        !self.account_id.is_empty()
    }

    pub fn ledger_key(&self, number: i64) -> String {
        format!("exception:{}:{number}", self.id)
    }

    /// Returns the keys of its ledger transactions.
    pub fn ledger_keys(&self) -> impl Iterator<Item = String> {
        (1..=self.postings).map(|number| self.ledger_key(number))
    }
}

/// Records an exception, once per charge and kind, and raises its alarm. Money taken by a
/// verification charge raises only the alarm, because it is refunded.
pub async fn raise(
    tx: &mut Tx,
    app: &App,
    charge: &Charge,
    alarm: &'static str,
    seen: Option<&ProviderPayment>,
) -> Result<()> {
    let is_refunded = charge.owner_kind == OwnerKind::Card && charge.taken.is_some();
    if !is_refunded && !insert(tx, app, charge, alarm, seen).await? {
        return Ok(());
    }
    app.metrics.count_alarm(alarm);
    let (company, subject, id) = charge.as_owner();
    let (seen_minor, seen_currency) = amount_seen(seen);
    tracing::error!(
        alarm,
        company,
        subject,
        id,
        asked_minor = charge.amount.0,
        asked_currency = charge.currency.as_str(),
        seen_minor = seen_minor.map(|minor| minor.0),
        seen_currency = seen_currency.map(|currency| currency.as_str()),
        "charge requires attention"
    );
    Ok(())
}

fn amount_seen(seen: Option<&ProviderPayment>) -> (Option<Minor>, Option<&Currency>) {
    seen.map(|seen| (seen.amount.minor, &seen.amount.currency)).unzip()
}

/// Inserts an open exception. Returns `false` if the charge already has one of this kind. Reopens a
/// resolved exception about the end of a dispute, because another dispute of the charge may raise
/// it again; a difference that every report repeats stays resolved.
async fn insert(
    tx: &mut Tx,
    app: &App,
    charge: &Charge,
    alarm: &str,
    seen: Option<&ProviderPayment>,
) -> Result<bool> {
    let now = app.clock.now();
    let (seen_minor, seen_currency) = amount_seen(seen);
    tx.sql(
        "INSERT INTO exceptions (company_id, id, kind, charge_id, expected_minor, currency,
             seen_minor, seen_currency, state, created_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 'open', $9)
         ON CONFLICT (company_id, charge_id, kind) DO UPDATE SET state = 'open', reason = NULL,
             resolved_at = NULL
         WHERE exceptions.state = 'resolved' AND exceptions.kind IN ('dispute_lost_in_part',
             'dispute_lost_after_a_refund', 'dispute_won_after_a_reversal')",
    )
    .params(params![
        &charge.company_id,
        app.random.id(now),
        alarm.replace(' ', "_"),
        &charge.id,
        charge.amount,
        &charge.currency,
        seen_minor,
        seen_currency,
        now
    ])
    .affects_one()
    .await
}

/// Resolves the open exceptions of a charge after the provider reported a success or a reversal.
pub async fn close(tx: &mut Tx, app: &App, charge: &Charge, reason: &str) -> Result<()> {
    tx.defer(
        "UPDATE exceptions SET state = 'resolved', reason = $3, resolved_at = $4
         WHERE company_id = $1 AND charge_id = $2 AND state = 'open'",
    )
    .params(params![&charge.company_id, &charge.id, reason, app.clock.now()])
    .execute()
    .await
}

/// Reopens the charge's most recently resolved exception about money, after the refund of that
/// money was refused or failed.
pub async fn reopen(tx: &mut Tx, charge: &Charge) -> Result<()> {
    tx.sql(
        "UPDATE exceptions SET state = 'open', reason = NULL, resolved_at = NULL
         WHERE company_id = $1 AND charge_id = $2
             AND kind NOT IN ('foreign_payment', 'unverified_charge', 'repayment_reversed')
             AND kind NOT LIKE 'dispute%'
             AND resolved_at = (
                 SELECT MAX(resolved_at) FROM exceptions WHERE company_id = $1 AND charge_id = $2
                     AND kind NOT IN ('foreign_payment', 'unverified_charge', 'repayment_reversed')
                     AND kind NOT LIKE 'dispute%')",
    )
    .params(params![&charge.company_id, &charge.id])
    .run()
    .await
    .map(drop)
}

/// Resolves an exception that the caller has locked and found open.
pub async fn resolve(
    tx: &mut Tx,
    app: &App,
    exception: &mut Exception,
    reason: &str,
) -> Result<()> {
    let now = app.clock.now();
    (exception.state, exception.reason) = (ExceptionState::Resolved, Some(reason.to_owned()));
    exception.resolved_at = Some(now);
    tx.sql(
        "UPDATE exceptions SET state = 'resolved', reason = $3, resolved_at = $4
         WHERE company_id = $1 AND id = $2 AND state = 'open'",
    )
    .params(params![exception.owner.column(), &exception.id, reason, now])
    .execute()
    .await
}

/// Writes owner and notes of an exception.
pub async fn update(tx: &mut Tx, exception: &Exception) -> Result<()> {
    tx.sql("UPDATE exceptions SET owner = $3, notes = $4 WHERE company_id = $1 AND id = $2")
        .params(params![
            exception.owner.column(),
            &exception.id,
            &exception.handler,
            &exception.notes
        ])
        .execute()
        .await
}

const SELECT: &str = "SELECT e.*, c.id AS charge, c.owner_kind, c.owner_id,
         COALESCE(c.provider, a.provider, '') AS provider,
         COALESCE(c.service_ref, e.listed_ref, '') AS service_ref
     FROM exceptions e
     LEFT JOIN charges c ON c.company_id = e.company_id
         AND c.id = COALESCE(e.listed_charge_id, e.charge_id)
     LEFT JOIN provider_accounts a ON a.id = e.account_id";

/// Returns exceptions of all companies after an id, oldest first.
pub async fn list(
    tx: &mut Tx,
    state: Option<String>,
    after: &str,
    limit: i64,
) -> Result<Vec<Exception>> {
    let sql = DynamicStatement::from(SELECT)
        .append(" WHERE e.id > ")
        .bind(after)
        .append_if(" AND e.state = ", state)
        .append(" ORDER BY e.id LIMIT ")
        .bind(limit);
    tx.dynamic(&sql).all().await
}

/// Returns the exceptions of a charge, oldest first.
pub async fn list_of_charge(
    tx: &mut Tx,
    company_id: &CompanyId,
    charge_id: &ChargeId,
) -> Result<Vec<Exception>> {
    let sql = DynamicStatement::from(SELECT)
        .append(" WHERE e.company_id = ")
        .bind(company_id)
        .append(" AND (e.charge_id = ")
        .bind(charge_id)
        .append(" OR e.listed_charge_id = ")
        .bind(charge_id)
        .append(") ORDER BY e.created_at, e.id");
    tx.dynamic(&sql).all().await
}

pub async fn find(tx: &mut Tx, owner: &Owner, id: &str) -> Result<Option<Exception>> {
    let sql = DynamicStatement::from(SELECT)
        .append(" WHERE e.company_id = ")
        .bind(owner)
        .append(" AND e.id = ")
        .bind(id);
    tx.dynamic(&sql).optional().await
}

/// Locks an exception and returns it.
pub async fn lock(tx: &mut Tx, owner: &Owner, id: &str) -> Result<Option<Exception>> {
    let locked: Option<String> = tx
        .sql("SELECT id FROM exceptions WHERE company_id = $1 AND id = $2 FOR UPDATE")
        .params(params![owner.column(), id])
        .optional_value()
        .await?;
    match locked {
        Some(id) => find(tx, owner, &id).await,
        None => Ok(None),
    }
}

/// Returns the exception of a difference from an account's list.
pub async fn find_difference(
    tx: &mut Tx,
    account_id: &AccountId,
    kind: &str,
    subject: &str,
) -> Result<Option<Exception>> {
    let sql = DynamicStatement::from(SELECT)
        .append(" WHERE e.account_id <> '' AND e.account_id = ")
        .bind(account_id)
        .append(" AND e.kind = ")
        .bind(kind)
        .append(" AND e.subject = ")
        .bind(subject);
    tx.dynamic(&sql).optional().await
}

/// Returns the open differences of a day of an account, oldest first.
pub async fn list_open_differences(
    tx: &mut Tx,
    account_id: &AccountId,
    day: Timestamp,
) -> Result<Vec<Exception>> {
    let sql = DynamicStatement::from(SELECT)
        .append(" WHERE e.account_id <> '' AND e.account_id = ")
        .bind(account_id)
        .append(" AND e.day = ")
        .bind(day)
        .append(" AND e.state = 'open' ORDER BY e.id ");
    tx.dynamic(&sql).all().await
}

/// Returns the differences of these kinds that are open or have a decided amount, after an id,
/// oldest first.
pub async fn list_unsettled_differences(
    tx: &mut Tx,
    account_id: &AccountId,
    kinds: &[String],
    after: &str,
    limit: i64,
) -> Result<Vec<Exception>> {
    let sql = DynamicStatement::from(SELECT)
        .append(" WHERE e.account_id <> '' AND e.account_id = ")
        .bind(account_id)
        .append(" AND e.kind")
        .append_in(kinds)
        .append(" AND (e.state = 'open' OR e.decided_minor <> 0) AND e.id > ")
        .bind(after)
        .append(" ORDER BY e.id LIMIT ")
        .bind(limit);
    tx.dynamic(&sql).all().await
}
