//! Differences between charges and their providers, of all companies.

use axum::extract::Query;
use serde::Deserialize;

use super::{company_cell, show_list};
use crate::{
    format::{Cell, Table, column, right},
    page::PageResult,
    session::Session,
};

#[derive(Deserialize)]
pub struct Filter {
    #[serde(default = "open")]
    state: String,
}

fn open() -> String {
    "open".to_owned()
}

pub async fn list(session: Session, Query(filter): Query<Filter>) -> PageResult {
    let query = [("state", &*filter.state), ("limit", "100")];
    let found = session.get(&["exceptions"], &query).await?;
    let columns = [
        column("Found", |exception| Cell::time(&exception["created_at"])),
        column("Kind", |exception| Cell::state(&exception["kind"])),
        column("Company", |exception| company_cell(&exception["company"])),
        column("Of", |exception| Cell::text(&exception["owner_kind"])),
        column("Provider", |exception| Cell::text(&exception["payment_service"])),
        right("Requested", |e| Cell::money(&e["expected"], &e["currency"])),
        right("At the provider", |e| Cell::money(&e["seen"], &e["seen_currency"])),
        column("State", |exception| Cell::state(&exception["state"])),
        column("Reason", |exception| Cell::text(&exception["reason"])),
    ];
    let empty = "There are no open exceptions.";
    show_list(
        &session,
        "Exceptions",
        Table::new("Exceptions", &found["exceptions"], &columns, empty),
    )
}
