//! Totals by day, provider or company, and statements of wallets.

use axum::extract::Path;

use super::lists::{Declared, List, ListQuery, Paging};
use crate::{
    format::{Cell, Column, column, money, right},
    page::PageResult,
    pages::company_cell,
    session::Session,
};

const FILTERS: Declared = &[
    ("by", "Totals by", &["day", "provider", "company"]),
    ("days", "Days (DD-MM-YYYY, or from/to)", &[]),
];

fn columns(session: &Session) -> Vec<Column<'_>> {
    vec![
        column("Day", |row| match row["day"].as_str() {
            Some(day) => Cell::Text(day.chars().take("2026-11-28".len()).collect()),
            None => Cell::Empty,
        }),
        column("Provider", |row| Cell::text(&row["provider"])),
        column("Company", |row| company_cell(session, &row["company"])),
        column("Kind", |row| Cell::text(&row["kind"])),
        right("Count", |row| Cell::text(&row["number"])),
        money("Taken", "amount", "currency"),
        money("Fees", "fees", "currency"),
        money("Refunded", "refunded", "currency"),
        money("Reversed", "reversed", "currency"),
        money("Disputed", "disputed", "currency"),
    ]
}

fn totals<'c>(session: &'c Session, source: &'c [&'c str]) -> List<'c> {
    List {
        title: "Totals",
        source,
        paging: Paging::WholeField("taken"),
        filters: FILTERS,
        columns: columns(session),
        empty: "No money was taken on these days.",
    }
}

pub async fn of_service(session: Session, sent: ListQuery) -> PageResult {
    totals(&session, &["totals"]).show(&session, &sent).await
}

pub async fn of_company(
    session: Session,
    Path(company): Path<String>,
    sent: ListQuery,
) -> PageResult {
    let source = ["companies", &company, "totals"];
    totals(&session, &source).show_of_company(&session, &company, &sent).await
}
