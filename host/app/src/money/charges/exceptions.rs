//! Exceptions: differences between a charge and its provider that an operator must resolve.
//!
//! One row per charge and kind. It is open until an operator resolves it with a reason, or until
//! the provider reports a success or a reversal.

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

/// What an operator noted about an exception.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "ExceptionNote")]
pub struct Note {
    pub at: Timestamp,
    /// The name of the operator.
    pub by: String,
    pub text: String,
}

/// A difference between a charge and its provider.
#[derive(Clone, Debug, FromRow, Serialize, JsonSchema)]
pub struct Exception {
    #[serde(rename = "company")]
    pub company_id: CompanyId,
    pub id: String,
    /// `amount_mismatch`, `currency_mismatch`, `paid_twice`, `repaid_twice`,
    /// `charge_without_an_owner`, `foreign_payment`, `unverified_charge`,
    /// `dispute_changed_after_its_end`, `dispute_won_after_a_reversal`,
    /// `dispute_in_another_currency`, `dispute_lost_after_a_refund` or `dispute_lost_in_part`.
    pub kind: String,
    #[serde(skip)]
    pub charge_id: ChargeId,
    /// The kind of record that was charged.
    pub owner_kind: OwnerKind,
    /// The id of the payment, card or recollection.
    pub owner_id: String,
    #[serde(rename = "payment_service")]
    pub provider: String,
    pub service_ref: String,
    /// The requested amount.
    #[sqlx(rename = "expected_minor")]
    pub expected: Minor,
    pub currency: Currency,
    /// The amount at the provider; `null` if it is not known.
    #[sqlx(rename = "seen_minor")]
    pub seen: Option<Minor>,
    pub seen_currency: Option<Currency>,
    pub state: ExceptionState,
    /// The name of the operator who works on it.
    pub owner: Option<String>,
    /// Oldest first.
    #[schemars(with = "Vec<Note>")]
    pub notes: Json<Vec<Note>>,
    /// Why it was resolved.
    pub reason: Option<String>,
    pub created_at: Timestamp,
    pub resolved_at: Option<Timestamp>,
}

/// Records an exception, once per charge and kind, and raises its alarm. Money that a verification
/// charge took raises the alarm only: it is refunded.
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

/// Inserts an open exception. Returns `false` if the charge already has one of this kind. Those that
/// the end of a dispute raises open again, because another dispute of the charge may raise them; a
/// difference that each report repeats stays resolved.
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

/// Reopens the charge's most recently resolved exception about money, after the refund of that money
/// was refused or failed.
pub async fn reopen(tx: &mut Tx, charge: &Charge) -> Result<()> {
    tx.sql(
        "UPDATE exceptions SET state = 'open', reason = NULL, resolved_at = NULL
         WHERE company_id = $1 AND charge_id = $2
             AND kind NOT IN ('foreign_payment', 'unverified_charge')
             AND kind NOT LIKE 'dispute%'
             AND resolved_at = (
                 SELECT MAX(resolved_at) FROM exceptions WHERE company_id = $1 AND charge_id = $2
                     AND kind NOT IN ('foreign_payment', 'unverified_charge')
                     AND kind NOT LIKE 'dispute%')",
    )
    .params(params![&charge.company_id, &charge.id])
    .run()
    .await
    .map(drop)
}

/// Resolves an open exception. Returns `false` if there is none with this id.
pub async fn resolve(tx: &mut Tx, app: &App, exception: &Exception, reason: &str) -> Result<bool> {
    tx.sql(
        "UPDATE exceptions SET state = 'resolved', reason = $3, resolved_at = $4
         WHERE company_id = $1 AND id = $2 AND state = 'open'",
    )
    .params(params![&exception.company_id, &exception.id, reason, app.clock.now()])
    .affects_one()
    .await
}

/// Writes owner and notes of an exception.
pub async fn update(tx: &mut Tx, exception: &Exception) -> Result<()> {
    tx.sql("UPDATE exceptions SET owner = $3, notes = $4 WHERE company_id = $1 AND id = $2")
        .params(params![&exception.company_id, &exception.id, &exception.owner, &exception.notes])
        .execute()
        .await
}

const SELECT: &str = "SELECT e.*, c.owner_kind, c.owner_id, c.provider, c.service_ref
     FROM exceptions e
     JOIN charges c ON c.company_id = e.company_id AND c.id = e.charge_id";

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
        .append(" AND e.charge_id = ")
        .bind(charge_id)
        .append(" ORDER BY e.created_at, e.id");
    tx.dynamic(&sql).all().await
}

pub async fn find(tx: &mut Tx, company_id: &CompanyId, id: &str) -> Result<Option<Exception>> {
    let sql = DynamicStatement::from(SELECT)
        .append(" WHERE e.company_id = ")
        .bind(company_id)
        .append(" AND e.id = ")
        .bind(id);
    tx.dynamic(&sql).optional().await
}
