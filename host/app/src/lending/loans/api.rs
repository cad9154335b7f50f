//! The operator API for loans, and the feeds of repayments.

use super::{
    COLLECT_JOB, CREDIT_EVENTS, Installment, Loan, LoanId, TRANSACTIONS, View, schedule, store,
};
use crate::{
    lending::collections,
    money::prelude::*,
    operations::feeds::{self, FeedPage, Reading},
};
use tollhouse_platform::clock::parse_date;

const MAX_ENTRIES: usize = 1_000;

fields! {
    /// A loan to create or replace.
    Body LoanChange(body) {
        /// The borrower, by `user_id` or internal id.
        user_id: Text<100>,
        /// The loan amount: the sum of the installments.
        amount: Amount,
        #[schemars(extend("examples" = ["NGN"]))]
        currency: Text<10>
            => body.require_one_of("currency", &currency, &["NGN", "USD"]).map(|()| currency),
        /// `true` once the borrower has the money. Before that, the loan cannot be repaid.
        disbursed: Flag,
        schedule: Rows<DueInstallment, MAX_ENTRIES> as Vec<DueInstallment>
            => read_schedule(body, amount, &schedule),
    }
}

fields! {
    /// An installment.
    Body DueInstallment(body) {
        /// A day (`YYYY-MM-DD`, from 00:00 UTC) or an RFC 3339 timestamp.
        due_date: Text<40> as DueDate => DueDate::read(body, &due_date),
        amount: Amount,
    }
}

#[derive(Clone, Copy)]
pub struct DueDate {
    at: Timestamp,
    /// The end of the due day, or `at`. The installment is collected automatically unless the loan
    /// was created after this time.
    overdue_at: Timestamp,
}

impl DueDate {
    fn read(body: &Fields, text: &str) -> Result<DueDate> {
        let day = parse_date(text, "%Y-%m-%d").and_then(|day| day.and_hms_opt(0, 0, 0));
        match (day, Timestamp::parse(text)) {
            (Some(day), _) => {
                let at = Timestamp(day.and_utc().timestamp_millis());
                Ok(DueDate { at, overdue_at: at.plus_seconds(DAY_SECONDS) })
            }
            (None, Some(at)) => Ok(DueDate { at, overdue_at: at }),
            (None, None) => {
                Err(body.must_be("due_date", "a day (YYYY-MM-DD) or an RFC 3339 timestamp"))
            }
        }
    }
}

fn read_schedule(body: &Fields, amount: Minor, rows: &[Fields]) -> Result<Vec<DueInstallment>> {
    let dues = rows.iter().map(DueInstallment::read).collect::<Result<Vec<_>>>()?;
    let sum = dues.iter().try_fold(0_i64, |sum, due| sum.checked_add(due.amount.0));
    match sum == Some(amount.0) {
        true => Ok(dues),
        false => Err(body.must_be("amount", "the sum of the schedule")),
    }
}

/// Creates a loan, or replaces it and keeps its repayments.
pub async fn put(
    State(app): State<App>,
    actor: Actor,
    Path((company, id)): Path<(CompanyId, LoanId)>,
    body: Body<LoanChange>,
) -> Result<DataResponse<View>> {
    companies::find(&app, &company).await?;
    let LoanChange { user_id, amount, currency, disbursed, schedule } = body.read()?;
    let db = app.store.clone();
    db.write(async move |tx| {
        let user = users::get(tx, &company, &user_id).await?;
        let now = app.clock.now();
        let new = Loan {
            company_id: company.clone(),
            id,
            user_key: user.id,
            user_id: user.user_id,
            amount,
            amount_paid: Minor(0),
            currency: currency.into(),
            disbursed,
            last_pay_date: None,
            created_at: now,
            updated_at: now,
        };
        let (loan, entries) = upsert(tx, new, schedule).await?;
        let detail = json!({ "loan": loan.id, "amount": loan.amount, "disbursed": loan.disbursed });
        audit::record(tx, &app, &actor, &company, "loan.put", detail).await?;
        let dues = entries.iter().filter(|entry| entry.automatic && entry.remaining > Minor(0));
        if let Some(first) = dues.map(|entry| entry.due_at).min() {
            jobs::enqueue(tx, &loan.company_id, COLLECT_JOB, &loan.id, first).await?;
            collections::wake(tx, &app, &loan.company_id, &loan.id).await?;
        }
        DataResponse::data(loan.view(entries), "Loan saved successfully")
    })
    .await
}

async fn upsert(
    tx: &mut Tx,
    new: Loan,
    dues: Vec<DueInstallment>,
) -> Result<(Loan, Vec<Installment>)> {
    let known = store::lock_or_insert(tx, &new).await?;
    let must =
        |field: &str, what: &str| Err(Error::Invalid(format!("the {field} field must be {what}")));
    if known.user_key != new.user_key {
        return must("user_id", "unchanged");
    }
    if known.currency != new.currency {
        return must("currency", "unchanged");
    }
    if known.amount_paid > new.amount {
        return must("amount", "at least the amount already repaid");
    }
    let loan = Loan {
        amount_paid: known.amount_paid,
        last_pay_date: known.last_pay_date,
        created_at: known.created_at,
        ..new
    };
    let mut entries: Vec<Installment> = (1..)
        .zip(dues)
        .map(|(number, due)| Installment {
            company_id: loan.company_id.clone(),
            loan_id: loan.id.clone(),
            number,
            due_at: due.due_date.at,
            amount: due.amount,
            remaining: due.amount,
            automatic: due.due_date.overdue_at >= loan.created_at,
        })
        .collect();
    schedule::allocate(&mut entries, loan.amount_paid);
    store::update(tx, &loan).await?;
    store::replace_installments(tx, &loan, &entries).await?;
    Ok((loan, entries))
}

pub async fn fetch(
    State(app): State<App>,
    Path((company, id)): Path<(CompanyId, LoanId)>,
) -> Result<DataResponse<View>> {
    let read = async |tx: &mut Tx| -> Result<_> {
        let loan = store::find(tx, &company, &id).await?;
        let loan = loan.ok_or_else(|| Error::not_found("loan not found"))?;
        Ok((loan, store::list_installments(tx, &company, &id).await?))
    };
    let (loan, entries) = app.store.read(read).await?;
    DataResponse::data(loan.view(entries), "Loan fetched successfully")
}

/// Lists the loans of a user with their schedules, newest first.
pub async fn list_of_user(
    State(app): State<App>,
    Path((company, user_id)): Path<(CompanyId, String)>,
) -> Result<DataResponse<Vec<View>>> {
    let read = async |tx: &mut Tx| -> Result<_> {
        let user = users::get_by_email_or_id(tx, &company, &user_id).await?;
        let mut loans = Vec::new();
        for loan in store::list_of_user(tx, &company, &user.id).await? {
            let entries = store::list_installments(tx, &company, &loan.id).await?;
            loans.push(loan.view(entries));
        }
        Ok(loans)
    };
    DataResponse::data(app.store.read(read).await?, "Loans fetched successfully")
}

pub async fn transactions(
    State(app): State<App>,
    query: Query<Reading>,
) -> Result<DataResponse<FeedPage>> {
    let part = feeds::read(&app, TRANSACTIONS, query.read()?).await?;
    DataResponse::data(part, "Transactions fetched successfully")
}

pub async fn credit_events(
    State(app): State<App>,
    query: Query<Reading>,
) -> Result<DataResponse<FeedPage>> {
    let part = feeds::read(&app, CREDIT_EVENTS, query.read()?).await?;
    DataResponse::data(part, "Credit score events fetched successfully")
}
