//! Failing jobs.

use axum::extract::{Form as FormBody, Query};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::{
    format::{Cell, column, plain, right},
    page::PageResult,
    pages::{
        Form, company_cell,
        lists::{Declared, List, ListQuery, Paging},
    },
    session::Session,
};

const FILTERS: Declared = &[("kind", "Kind of job", &[]), ("company", "Company id", &[])];

pub async fn list(session: Session, sent: ListQuery) -> PageResult {
    let columns = vec![
        column("Job", |job| Cell::text(&job["kind"])),
        column("Company", |job| company_cell(&session, &job["company"])),
        column("Record", |job| Cell::code(&job["subject"])),
        right("Failures", |job| Cell::text(&job["failures"])),
        column("Last error", |job| Cell::text(&job["error"])),
        column("Parked", |job| Cell::time(&job["parked_at"])),
        column("Next run", |job| Cell::time(&job["next_run_at"])),
        column("", |job| {
            let job = ["company", "kind", "subject"].map(|field| (field, plain(&job[field])));
            let query = job.each_ref().map(|(field, value)| (*field, &**value));
            session.button("jobs.retry", "Retry", "", session.href(&["jobs", "retry"], &query))
        }),
    ];
    let list = List {
        title: "Jobs",
        source: &["jobs"],
        paging: Paging::Numbered,
        filters: FILTERS,
        columns,
        empty: "No job is failing.",
    };
    list.show(&session, &sent).await
}

/// The job that a button retries.
#[derive(Deserialize, Serialize)]
pub struct Which {
    #[serde(skip_serializing_if = "Option::is_none")]
    company: Option<String>,
    kind: String,
    subject: String,
}

pub async fn retry(
    session: Session,
    Query(job): Query<Which>,
    FormBody(form): FormBody<Form>,
) -> PageResult {
    session.check_form(&form.form_token)?;
    session.post(&["jobs", "retry"], &json!(job)).await?;
    session.redirect(&["jobs"])
}
