//! Jobs that fail each time.

use axum::extract::Query;

use super::{PAGE_SIZE, PageQuery, companies::page_of, company_cell, show_list};
use crate::{
    format::{Cell, Table, column, right},
    page::PageResult,
    session::Session,
};

pub async fn list(session: Session, Query(query): Query<PageQuery>) -> PageResult {
    let query = [("page", &*query.page), ("limit", PAGE_SIZE)];
    let found = session.get(&["jobs"], &query).await?;
    let columns = [
        column("Job", |job| Cell::text(&job["kind"])),
        column("Company", |job| company_cell(&job["company"])),
        column("Record", |job| Cell::code(&job["subject"])),
        right("Failures", |job| Cell::text(&job["failures"])),
        column("Last error", |job| Cell::text(&job["error"])),
        column("Parked", |job| Cell::time(&job["parked_at"])),
        column("Next run", |job| Cell::time(&job["next_run_at"])),
    ];
    let table = Table::new("Failing jobs", &found["docs"], &columns, "No job is failing.");
    show_list(&session, "Jobs", table.paged(&found, |page| page_of("jobs", page)))
}
