//! The API log of a company: its requests to the API, without their content.

use axum::extract::Path;
use serde_json::Value;

use crate::{
    format::{Cell, Column, column, plain, right},
    page::PageResult,
    pages::lists::{Declared, List, ListQuery, Paging},
    session::Session,
};

const FILTERS: Declared = &[
    ("outcome", "Outcome", &["success", "failed", "client_error", "server_error"]),
    ("method", "Method", &["DELETE", "GET", "HEAD", "POST", "PUT"]),
    ("key", "API key (id)", &[]),
    ("request_id", "Request id", &[]),
    ("created_at", "Time (DD-MM-YYYY, or from/to)", &[]),
];

/// The columns of requests. The key links the requests of the same key.
fn columns<'c>(session: &'c Session, company: &'c str) -> Vec<Column<'c>> {
    let of_key = move |request: &Value| {
        session.href(&["companies", company, "requests"], &[("key", &plain(&request["key"]))])
    };
    vec![
        column("Time", |request| Cell::time(&request["created_at"])),
        column("Method", |request| Cell::text(&request["method"])),
        column("Route", |request| Cell::code(&request["route"])),
        column("Status", |request| status(&request["status"])),
        column("Error", |request| Cell::text(&request["error"])),
        column("Field", |request| Cell::text(&request["field"])),
        right("Milliseconds", |request| milliseconds(&request["duration_us"])),
        column("API key", move |request| match request["key_prefix"].as_str() {
            Some(_) => Cell::link(of_key(request), &request["key_prefix"]),
            None => Cell::code(&request["key"]),
        }),
        column("Address", |request| Cell::text(&request["address"])),
        column("Request id", |request| Cell::code(&request["request_id"])),
    ]
}

fn status(status: &Value) -> Cell {
    let tone = if status.as_u64().is_some_and(|status| status < 400) { "good" } else { "bad" };
    Cell::State { text: plain(status), tone }
}

fn milliseconds(duration_us: &Value) -> Cell {
    let us = duration_us.as_u64().unwrap_or_default();
    Cell::Text(format!("{}.{}", us / 1_000, us % 1_000 / 100))
}

pub async fn list(session: Session, Path(company): Path<String>, sent: ListQuery) -> PageResult {
    let list = List {
        title: "API log",
        source: &["companies", &company, "requests"],
        paging: Paging::Cursor("requests"),
        filters: FILTERS,
        columns: columns(&session, &company),
        empty: "There are no such requests, or the service keeps no API log.",
    };
    list.show_of_company(&session, &company, &sent).await
}
