//! The rows of loans and their installments.

use crate::{
    customers::{SELECT_WITH_USER_ID, UserKey},
    state::storage::*,
};

text_types! {
    /// The id of a loan, assigned by the system that created it.
    LoanId;
}

/// A loan of a company to a user.
#[derive(Clone, Debug, FromRow)]
pub struct Loan {
    pub company_id: CompanyId,
    pub id: LoanId,
    /// The internal id of the borrower.
    pub user_key: UserKey,
    /// The user's current `user_id`.
    #[sqlx(rename = "present_user_id")]
    pub user_id: String,
    #[sqlx(rename = "amount_minor")]
    pub amount: Minor,
    #[sqlx(rename = "amount_paid_minor")]
    pub amount_paid: Minor,
    pub currency: Currency,
    pub disbursed: bool,
    pub last_pay_date: Option<Timestamp>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

impl Loan {
    pub fn remaining(&self) -> Minor {
        Minor(self.amount.0 - self.amount_paid.0)
    }

    pub fn is_paid(&self) -> bool {
        self.amount_paid >= self.amount
    }
}

/// An installment.
#[derive(Clone, Debug, PartialEq, FromRow, Serialize, JsonSchema)]
pub struct Installment {
    #[serde(skip)]
    pub company_id: CompanyId,
    #[serde(skip)]
    pub loan_id: LoanId,
    /// Position in the schedule, from 1.
    #[serde(skip)]
    pub number: i64,
    #[serde(rename = "due_date")]
    pub due_at: Timestamp,
    #[sqlx(rename = "amount_minor")]
    pub amount: Minor,
    /// The unpaid part of `amount`.
    #[serde(rename = "amount_remaining")]
    #[sqlx(rename = "remaining_minor")]
    pub remaining: Minor,
    /// `true` if it is collected on its due date; `false` if it was due before the loan was sent.
    #[serde(skip)]
    pub automatic: bool,
}

fn by_id(company_id: &CompanyId, id: &LoanId) -> DynamicStatement {
    DynamicStatement::from(SELECT_WITH_USER_ID)
        .append(" FROM loans t WHERE company_id = ")
        .bind(company_id)
        .append(" AND id = ")
        .bind(id)
}

pub async fn find(tx: &mut Tx, company_id: &CompanyId, id: &LoanId) -> Result<Option<Loan>> {
    tx.dynamic(&by_id(company_id, id)).optional().await
}

pub async fn list_of_user(
    tx: &mut Tx,
    company_id: &CompanyId,
    user_key: &UserKey,
) -> Result<Vec<Loan>> {
    let sql = DynamicStatement::from(SELECT_WITH_USER_ID)
        .append(" FROM loans t WHERE company_id = ")
        .bind(company_id)
        .append(" AND user_key = ")
        .bind(user_key)
        .append(" ORDER BY created_at DESC, id DESC");
    tx.dynamic(&sql).all().await
}

/// Locks a loan until the transaction ends: its changes are processed one at a time.
pub async fn lock(tx: &mut Tx, company_id: &CompanyId, id: &LoanId) -> Result<Option<Loan>> {
    tx.dynamic(&by_id(company_id, id).append(" FOR UPDATE")).optional().await
}

/// Locks the loan of a recollection.
pub async fn lock_of(tx: &mut Tx, company_id: &CompanyId, recollection_id: &str) -> Result<()> {
    tx.sql(
        "SELECT 1 FROM loans WHERE company_id = $1 AND id = (
             SELECT loan_id FROM recollections WHERE company_id = $1 AND id = $2) FOR UPDATE",
    )
    .params(params![company_id, recollection_id])
    .execute()
    .await
}

/// Inserts the loan if it does not exist, and locks it.
pub async fn lock_or_insert(tx: &mut Tx, new: &Loan) -> Result<Loan> {
    tx.sql(
        "INSERT INTO loans (company_id, id, user_key, user_id, amount_minor, amount_paid_minor,
             currency, disbursed, last_pay_date, created_at, updated_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
         ON CONFLICT (company_id, id) DO NOTHING",
    )
    .params(params![
        &new.company_id, &new.id, &new.user_key, &new.user_id, new.amount, new.amount_paid,
        &new.currency, new.disbursed, new.last_pay_date, new.created_at, new.updated_at
    ])
    .execute()
    .await?;
    tx.dynamic(&by_id(&new.company_id, &new.id).append(" FOR UPDATE")).one().await
}

/// Writes the mutable columns of a loan.
pub async fn update(tx: &mut Tx, loan: &Loan) -> Result<()> {
    tx.defer(
        "UPDATE loans SET user_id = $3, amount_minor = $4, amount_paid_minor = $5,
             disbursed = $6, last_pay_date = $7, updated_at = $8
         WHERE company_id = $1 AND id = $2",
    )
    .params(params![
        &loan.company_id, &loan.id, &loan.user_id, loan.amount, loan.amount_paid, loan.disbursed,
        loan.last_pay_date, loan.updated_at
    ])
    .execute()
    .await
}

/// Returns the installments in the order in which they were sent.
pub async fn list_installments(
    tx: &mut Tx,
    company_id: &CompanyId,
    loan_id: &LoanId,
) -> Result<Vec<Installment>> {
    tx.sql("SELECT * FROM loan_entries WHERE company_id = $1 AND loan_id = $2 ORDER BY number")
        .params(params![company_id, loan_id])
        .all()
        .await
}

/// Replaces the schedule of a loan.
pub async fn replace_installments(tx: &mut Tx, loan: &Loan, entries: &[Installment]) -> Result<()> {
    tx.sql("DELETE FROM loan_entries WHERE company_id = $1 AND loan_id = $2")
        .params(params![&loan.company_id, &loan.id])
        .execute()
        .await?;
    for entry in entries {
        tx.sql(
            "INSERT INTO loan_entries (company_id, loan_id, number, due_at, amount_minor,
                 remaining_minor, automatic)
             VALUES ($1, $2, $3, $4, $5, $6, $7)",
        )
        .params(params![
            &entry.company_id, &entry.loan_id, entry.number, entry.due_at, entry.amount,
            entry.remaining, entry.automatic
        ])
        .execute()
        .await?;
    }
    Ok(())
}

/// Writes the remaining amount of an installment.
pub async fn update_installment(tx: &mut Tx, entry: &Installment) -> Result<()> {
    tx.defer_distinct(
        "UPDATE loan_entries SET remaining_minor = $4
         WHERE company_id = $1 AND loan_id = $2 AND number = $3",
    )
    .params(params![&entry.company_id, &entry.loan_id, entry.number, entry.remaining])
    .execute()
    .await
}
