//! Collection policies of companies: which instruments are charged for an installment, when and how
//! often.
//!
//! - `policy`: the policy as data;
//! - `decide`: what to charge next, a pure function of policy, history, instruments and time;
//! - `collect`: the part of the job `loan.collect` that follows a policy;
//! - `remind`: the events about installments, in the same job;
//! - `replay` and `simulate`: what a policy would have done with past installments.
//!
//! Without an active policy, `recollections::automatic` collects each installment once.

pub mod api;
mod collect;
mod decide;
mod policy;
mod remind;
mod replay;
mod simulate;
mod store;

pub use self::{
    collect::collect,
    decide::InstrumentId,
    remind::{EventData, remind},
    store::{PolicyVersion, find_latest, is_attempt},
};
use crate::{
    lending::loans::{COLLECT_JOB, LoanId},
    money::prelude::*,
};

/// The job that applies a new policy to the loans of a company. Its subject is the last loan of the
/// previous page.
pub const APPLY_JOB: &str = "collection.apply";

/// Number of loans in a page of [`APPLY_JOB`].
const LOANS_PER_PAGE: i64 = 200;

impl PolicyVersion {
    /// Returns whether installments are collected by it.
    pub fn is_active(&self) -> bool {
        self.policy.active
    }
}

/// Wakes the collection job of a loan, if its company has a policy.
pub async fn wake(tx: &mut Tx, app: &App, company_id: &CompanyId, loan_id: &LoanId) -> Result<()> {
    if find_latest(tx, company_id).await?.is_some() {
        jobs::enqueue(tx, company_id, COLLECT_JOB, loan_id, app.clock.now()).await?;
    }
    Ok(())
}

/// Wakes the collection of a page of loans.
pub async fn apply_job(app: App, job: Job) -> Result<JobResult> {
    let db = app.store.clone();
    db.write(async move |tx| {
        let (company_id, now) = (&job.company_id, app.clock.now());
        let loans = store::list_outstanding(tx, company_id, &job.subject, LOANS_PER_PAGE).await?;
        for loan in &loans {
            jobs::enqueue(tx, company_id, COLLECT_JOB, loan, now).await?;
        }
        if let Some(last) = loans.last() {
            jobs::enqueue(tx, company_id, APPLY_JOB, last, now).await?;
        }
        Ok(JobResult::Done)
    })
    .await
}
