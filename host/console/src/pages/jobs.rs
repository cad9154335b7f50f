//! Failing jobs.

use super::{
    company_cell,
    lists::{Declared, List, ListQuery, Paging},
};
use crate::{
    format::{Cell, column, right},
    page::PageResult,
    session::Session,
};

const FILTERS: Declared = &[("kind", "Kind of job", &[]), ("company", "Company id", &[])];

pub async fn list(session: Session, sent: ListQuery) -> PageResult {
    let columns = vec![
        column("Job", |job| Cell::text(&job["kind"])),
        column("Company", |job| company_cell(&job["company"])),
        column("Record", |job| Cell::code(&job["subject"])),
        right("Failures", |job| Cell::text(&job["failures"])),
        column("Last error", |job| Cell::text(&job["error"])),
        column("Parked", |job| Cell::time(&job["parked_at"])),
        column("Next run", |job| Cell::time(&job["next_run_at"])),
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
