//! Operator API for failing jobs.

use super::store::{self, FailingJob};
use crate::{
    operations::audit::{self, Actor},
    state::prelude::*,
};

/// Maximum number of jobs that one request retries.
const MAX_RETRIED: i64 = 10_000;

fields! {
    /// Page and filters of failing jobs.
    Query FailingJobs {
        /// Page number, counted from 1.
        page: PageNumber,
        /// Jobs per page; more than 1,000 counts as 1,000.
        limit: Limit<50, 1_000>,
        /// Kind of jobs.
        kind: Exactly,
        /// Id of a company, to return only its jobs.
        company: Exactly,
    }
}

fields! {
    /// The jobs to retry; without a field, all failing jobs.
    Body Retry {
        /// Id of a company.
        company: Option<Text<255>>,
        /// Kind of jobs.
        kind: Option<Text<255>>,
        /// Subject of the jobs.
        subject: Option<Text<255>>,
    }
}

/// The result of a retry.
#[derive(Serialize, JsonSchema)]
pub struct Retried {
    /// Number of jobs that are due now.
    jobs: u64,
}

/// Lists jobs that have failed at least ten times in a row, those with the most failures first.
pub async fn list(
    State(app): State<App>,
    query: Query<FailingJobs>,
) -> Result<DataResponse<ListPage<FailingJob>>> {
    let filter = query.read()?;
    let page = PageRequest { number: filter.page, limit: filter.limit };
    let jobs = app.store.read(async |tx| store::list(tx, &filter, page).await).await?;
    DataResponse::data(jobs, "Failing jobs fetched successfully")
}

/// Runs failing jobs now, also parked ones: at most 10,000 per request.
pub async fn retry(
    State(app): State<App>,
    actor: Actor,
    body: Body<Retry>,
) -> Result<DataResponse<Retried>> {
    let (which, db) = (body.read()?, app.store.clone());
    db.write(async move |tx| {
        let jobs = store::retry(tx, &which, app.clock.now(), MAX_RETRIED).await?;
        let Retry { company, kind, subject } = &which;
        let detail = json!({ "company": company, "kind": kind, "subject": subject, "jobs": jobs });
        audit::record(tx, &app, &actor, Owner::Service, "job.retry", detail).await?;
        DataResponse::data(Retried { jobs }, "Jobs queued for retry")
    })
    .await
}
