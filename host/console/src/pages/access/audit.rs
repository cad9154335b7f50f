//! The audit log of the service or of a company.

use axum::extract::{Path, Query};
use serde_json::Value;

use crate::pages::{PAGE_SIZE, PageQuery, companies::page_of, show_company_list, show_list};
use crate::{
    api::path,
    format::{Cell, Table, column, right},
    page::PageResult,
    session::Session,
};

fn table(found: &Value) -> Table {
    let columns = [
        right("No.", |entry| Cell::text(&entry["number"])),
        column("At", |entry| Cell::time(&entry["created_at"])),
        column("Operator", |entry| Cell::text(&entry["actor"])),
        column("Action", |entry| Cell::text(&entry["action"])),
        column("Detail", |entry| Cell::Code(entry["detail"].to_string())),
        column("Address", |entry| Cell::text(&entry["address"])),
        column("Request", |entry| Cell::code(&entry["request_id"])),
    ];
    Table::new("Audit log", &found["docs"], &columns, "There are no entries yet.")
}

pub async fn of_service(session: Session, Query(query): Query<PageQuery>) -> PageResult {
    let query = [("page", &*query.page), ("limit", PAGE_SIZE)];
    let found = session.get(&["audit"], &query).await?;
    let table = table(&found).paged(&found, |page| page_of("audit", page));
    show_list(&session, "Audit log", table)
}

pub async fn of_company(
    session: Session,
    Path(company): Path<String>,
    Query(query): Query<PageQuery>,
) -> PageResult {
    let query = [("page", &*query.page), ("limit", PAGE_SIZE)];
    let found = session.get(&["companies", &company, "audit"], &query).await?;
    let page = |page: u64| {
        path(&["console", "companies", &company, "audit"], &[("page", &page.to_string())])
    };
    let table = table(&found).paged(&found, page);
    show_company_list(&session, &company, "Audit log", table).await
}
