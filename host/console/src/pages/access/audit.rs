//! The audit log of the service or of a company.

use axum::extract::Path;
use serde_json::Value;

use crate::pages::{
    filters::{Filtered, ListQuery},
    show_company_list, show_list,
};
use crate::{
    format::{Cell, Table, column, right},
    page::PageResult,
    session::Session,
};

fn table(found: &Value) -> Table {
    let columns = [
        right("No.", |entry| Cell::text(&entry["number"])),
        column("Time", |entry| Cell::time(&entry["created_at"])),
        column("Operator", |entry| Cell::text(&entry["actor"])),
        column("Action", |entry| Cell::text(&entry["action"])),
        column("Detail", |entry| Cell::pairs(&entry["detail"])),
        column("Address", |entry| Cell::text(&entry["address"])),
        column("Request", |entry| Cell::code(&entry["request_id"])),
    ];
    Table::new("Audit log", &found["docs"], &columns, "There are no entries yet.")
}

pub async fn of_service(session: Session, sent: ListQuery) -> PageResult {
    let list = Filtered::new(&sent, &[]);
    let found = session.get(&["audit"], &list.query()).await?;
    let table = table(&found).paged(&found, |page| list.page(&["console", "audit"], page));
    show_list(&session, "Audit log", list.filters, table)
}

pub async fn of_company(
    session: Session,
    Path(company): Path<String>,
    sent: ListQuery,
) -> PageResult {
    let list = Filtered::new(&sent, &[]);
    let found = session.get(&["companies", &company, "audit"], &list.query()).await?;
    let page = |page| list.page(&["console", "companies", &company, "audit"], page);
    let table = table(&found).paged(&found, page);
    show_company_list(&session, &company, "Audit log", list.filters, table).await
}
