//! The audit log of the service or of a company.

use axum::extract::Path;

use crate::{
    format::{Cell, Column, column, right},
    page::PageResult,
    pages::lists::{Declared, List, ListQuery, Paging},
    session::Session,
};

const FILTERS: Declared = &[("request_id", "Request id", &[])];

fn columns() -> Vec<Column<'static>> {
    vec![
        right("No.", |entry| Cell::text(&entry["number"])),
        column("Time", |entry| Cell::time(&entry["created_at"])),
        column("Operator", |entry| Cell::text(&entry["actor"])),
        column("Action", |entry| Cell::text(&entry["action"])),
        column("Detail", |entry| Cell::pairs(&entry["detail"])),
        column("Address", |entry| Cell::text(&entry["address"])),
        column("Request", |entry| Cell::code(&entry["request_id"])),
    ]
}

fn list<'c>(source: &'c [&'c str]) -> List<'c> {
    List {
        title: "Audit log",
        source,
        paging: Paging::Numbered,
        filters: FILTERS,
        columns: columns(),
        empty: "There are no such entries.",
    }
}

pub async fn of_service(session: Session, sent: ListQuery) -> PageResult {
    list(&["audit"]).show(&session, &sent).await
}

pub async fn of_company(
    session: Session,
    Path(company): Path<String>,
    sent: ListQuery,
) -> PageResult {
    let source = ["companies", &company, "audit"];
    list(&source).show_of_company(&session, &company, &sent).await
}
