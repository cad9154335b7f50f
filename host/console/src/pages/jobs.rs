//! Failing jobs.

use super::{
    company_cell,
    filters::{Declared, Filtered, ListQuery},
    show_list,
};
use crate::{
    format::{Cell, Table, column, right},
    page::PageResult,
    session::Session,
};

const FILTERS: Declared = &[("kind", "Kind of job", &[]), ("company", "Company id", &[])];

pub async fn list(session: Session, sent: ListQuery) -> PageResult {
    let list = Filtered::new(&sent, FILTERS);
    let found = session.get(&["jobs"], &list.query()).await?;
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
    let table = table.paged(&found, |page| list.page(&["console", "jobs"], page));
    show_list(&session, "Jobs", list.filters, table)
}
