//! Loans: the outstanding amount, the schedule and the effect of repayments.
//!
//! Another system originates loans and sends or resends them through the operator API; repayments
//! are kept. Changes of a loan happen one at a time, under the lock of its row.

pub mod api;
mod schedule;
mod store;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

pub use self::{
    schedule::{next_due, uncovered_amount},
    store::{Installment, Loan, LoanId, find, list_installments, lock},
};
use crate::{
    customers::UserKey,
    lending::recollections::RecollectionId,
    operations::{feeds as streams, feeds::Feed},
    state::App,
};
use tollhouse_platform::{
    clock::Timestamp,
    error::Result,
    store::Tx,
    values::money::{Currency, Minor},
};

/// The job that collects due installments.
pub const COLLECT_JOB: &str = "loan.collect";

/// The feed of repayments, for internal consumers.
pub const TRANSACTIONS: Feed = Feed("transactions");
/// The feed of credit-score events, for internal consumers.
pub const CREDIT_EVENTS: Feed = Feed("credit");

/// A loan.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "Loan")]
pub struct View {
    id: LoanId,
    /// The internal id of the borrower.
    user: UserKey,
    user_id: String,
    amount: Minor,
    currency: Currency,
    disbursed: bool,
    amount_paid: Minor,
    amount_remaining_to_pay: Minor,
    last_pay_date: Option<Timestamp>,
    /// The next due date; `null` once the loan is paid.
    next_pay_date: Option<Timestamp>,
    paid: bool,
    schedule: Vec<InstallmentView>,
    created_at: Timestamp,
    updated_at: Timestamp,
}

/// An installment.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "Installment")]
pub struct InstallmentView {
    due_date: Timestamp,
    amount: Minor,
    /// The unpaid part of `amount`.
    amount_remaining: Minor,
}

impl Loan {
    #[must_use]
    pub fn view(self, entries: Vec<Installment>) -> View {
        View {
            amount_remaining_to_pay: self.remaining().minor,
            next_pay_date: next_due(&entries),
            paid: self.is_paid(),
            id: self.id,
            user: self.user_key,
            user_id: self.user_id,
            amount: self.amount,
            currency: self.currency,
            disbursed: self.disbursed,
            amount_paid: self.amount_paid,
            last_pay_date: self.last_pay_date,
            schedule: entries.into_iter().map(InstallmentView::from).collect(),
            created_at: self.created_at,
            updated_at: self.updated_at,
        }
    }
}

impl From<Installment> for InstallmentView {
    fn from(entry: Installment) -> InstallmentView {
        InstallmentView {
            due_date: entry.due_at,
            amount: entry.amount,
            amount_remaining: entry.remaining,
        }
    }
}

/// Money received for a loan.
#[derive(Clone, Debug)]
pub struct Repayment {
    pub recollection_id: RecollectionId,
    pub amount: Minor,
    /// The provider fee.
    pub fees: Minor,
    pub payment_service: String,
    pub payment_channel: String,
    pub at: Timestamp,
}

/// The effect of a repayment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AppliedRepayment {
    pub applied: Minor,
    /// The amount beyond what was outstanding.
    pub overpayment: Minor,
}

/// Applies a repayment to a loan that the caller has locked, and writes both feeds.
pub async fn apply_repayment(
    tx: &mut Tx,
    app: &App,
    mut loan: Loan,
    repayment: &Repayment,
) -> Result<(Loan, AppliedRepayment)> {
    let now = app.clock.now();
    let mut entries = store::list_installments(tx, &loan.company_id, &loan.id).await?;
    let before = entries.clone();
    let parts = schedule::allocate(&mut entries, repayment.amount);
    for (entry, _) in entries.iter().zip(&before).filter(|(now, before)| now != before) {
        store::update_installment(tx, entry).await?;
    }
    let applied = Minor(parts.iter().map(|part| part.amount.0).sum());
    let repaid = AppliedRepayment { applied, overpayment: Minor(repayment.amount.0 - applied.0) };
    loan.amount_paid.0 += applied.0;
    loan.last_pay_date = loan.last_pay_date.max(Some(repayment.at));
    loan.updated_at = now;
    store::update(tx, &loan).await?;

    let spread: Vec<_> = parts
        .iter()
        .map(|part| json!({ "due_date": part.due_at, "amount": part.amount }))
        .collect();
    let mut told = json!({
        "loan": loan.id,
        "recollection": repayment.recollection_id,
        "user": loan.user_key,
        "user_id": loan.user_id,
        "amount": repayment.amount,
        "currency": loan.currency,
        "repaid_at": repayment.at,
    });
    let mut transaction = told.clone();
    transaction["fees"] = json!(repayment.fees);
    transaction["applied"] = json!(repaid.applied);
    transaction["overpayment"] = json!(repaid.overpayment);
    transaction["installments"] = json!(spread);
    transaction["payment_service"] = json!(repayment.payment_service);
    transaction["payment_channel"] = json!(repayment.payment_channel);
    streams::write(tx, app, TRANSACTIONS, &loan.company_id, transaction).await?;
    let oldest = parts.first().map(|part| part.due_at);
    told["due_date"] = json!(oldest);
    told["days_late"] = json!(oldest.map_or(0, |due| days_late(due, repayment.at)));
    told["amount_remaining_to_pay"] = json!(loan.remaining().minor);
    told["paid"] = json!(loan.is_paid());
    streams::write(tx, app, CREDIT_EVENTS, &loan.company_id, told).await?;
    Ok((loan, repaid))
}

fn days_late(due: Timestamp, at: Timestamp) -> i64 {
    const DAY_MS: i64 = 24 * 3600 * 1000;
    (at.0 - due.0).max(0) / DAY_MS
}
