//! Loans: the outstanding amount, the schedule and the effect of repayments.
//!
//! Another system originates loans and sends or resends them through the operator API; repayments
//! are kept. Changes of a loan happen one at a time, under the lock of its row.

pub mod api;
mod schedule;
mod store;

pub use self::{
    schedule::{Allocation, next_due, uncovered_amount},
    store::{Installment, Loan, LoanId, find, list_installments, lock, lock_of},
};
use crate::{
    lending::recollections::Recollection,
    money::prelude::*,
    operations::feeds::{self, Feed},
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
    schedule: Vec<Installment>,
    created_at: Timestamp,
    updated_at: Timestamp,
}

impl Loan {
    pub fn view(self, entries: Vec<Installment>) -> View {
        View {
            amount_remaining_to_pay: self.remaining(),
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
            schedule: entries,
            created_at: self.created_at,
            updated_at: self.updated_at,
        }
    }
}

/// Returns the outstanding amount of the installments that are due.
pub async fn due_amount(tx: &mut Tx, loan: &Loan, now: Timestamp) -> Result<Minor> {
    let entries = store::list_installments(tx, &loan.company_id, &loan.id).await?;
    let due = entries.iter().filter(|entry| entry.due_at <= now);
    Ok(Minor(due.map(|entry| entry.remaining.0).sum()))
}

/// Applies a repayment to a loan that the caller has locked, and writes both feeds. Returns the
/// parts, whose sum is at most the outstanding amount.
pub async fn apply_repayment(
    tx: &mut Tx,
    app: &App,
    mut loan: Loan,
    repayment: &Recollection,
    repaid_at: Timestamp,
) -> Result<Vec<Allocation>> {
    let now = app.clock.now();
    let mut entries = store::list_installments(tx, &loan.company_id, &loan.id).await?;
    let before = entries.clone();
    let parts = schedule::allocate(&mut entries, repayment.amount);
    for (entry, _) in entries.iter().zip(&before).filter(|(now, before)| now != before) {
        store::update_installment(tx, entry).await?;
    }
    let applied = Minor(parts.iter().map(|part| part.amount.0).sum());
    let overpayment = Minor(repayment.amount.0 - applied.0);
    loan.amount_paid.0 += applied.0;
    loan.last_pay_date = loan.last_pay_date.max(Some(repaid_at));
    loan.updated_at = now;
    store::update(tx, &loan).await?;

    let mut credit_event = json!({
        "loan": loan.id,
        "recollection": repayment.id,
        "user": loan.user_key,
        "user_id": loan.user_id,
        "amount": repayment.amount,
        "currency": loan.currency,
        "repaid_at": repaid_at,
    });
    let mut transaction = credit_event.clone();
    transaction["fees"] = json!(repayment.fees);
    transaction["applied"] = json!(applied);
    transaction["overpayment"] = json!(overpayment);
    transaction["installments"] = json!(parts);
    transaction["payment_service"] = json!(repayment.payment_service);
    transaction["payment_channel"] = json!(repayment.payment_channel);
    feeds::write(tx, app, TRANSACTIONS, &loan.company_id, transaction).await?;
    let oldest = parts.first().map(|part| part.due_at);
    let days_late = oldest.map_or(0, |due| (repaid_at.0 - due.0).max(0) / DAY_MS);
    credit_event["due_date"] = json!(oldest);
    credit_event["days_late"] = json!(days_late);
    credit_event["amount_remaining_to_pay"] = json!(loan.remaining());
    credit_event["paid"] = json!(loan.is_paid());
    feeds::write(tx, app, CREDIT_EVENTS, &loan.company_id, credit_event).await?;
    Ok(parts)
}

/// Reverts a repayment of a loan that the caller has locked, and writes both feeds, with negative
/// amounts.
pub async fn revert_repayment(
    tx: &mut Tx,
    app: &App,
    mut loan: Loan,
    repayment: &Recollection,
) -> Result<()> {
    let now = app.clock.now();
    let mut entries = store::list_installments(tx, &loan.company_id, &loan.id).await?;
    let before = entries.clone();
    let applied = match &repayment.applied {
        Some(applied) => applied.0.clone(),
        // Applied by a host of the previous version.
        None => vec![Allocation { due_at: now, amount: repayment.amount.min(loan.amount_paid) }],
    };
    let reverted = schedule::revert(&mut entries, &applied);
    for (entry, _) in entries.iter().zip(&before).filter(|(now, before)| now != before) {
        store::update_installment(tx, entry).await?;
    }
    loan.amount_paid.0 -= reverted.0;
    loan.updated_at = now;
    store::update(tx, &loan).await?;
    let event = json!({
        "loan": loan.id,
        "recollection": repayment.id,
        "user": loan.user_key,
        "user_id": loan.user_id,
        "amount": Minor(-repayment.amount.0),
        "currency": loan.currency,
        "reversed_at": now,
    });
    let (mut transaction, mut credit_event) = (event.clone(), event);
    transaction["applied"] = json!(Minor(-reverted.0));
    transaction["payment_service"] = json!(repayment.payment_service);
    transaction["payment_channel"] = json!(repayment.payment_channel);
    feeds::write(tx, app, TRANSACTIONS, &loan.company_id, transaction).await?;
    credit_event["amount_remaining_to_pay"] = json!(loan.remaining());
    credit_event["paid"] = json!(loan.is_paid());
    Ok(feeds::write(tx, app, CREDIT_EVENTS, &loan.company_id, credit_event).await?)
}
