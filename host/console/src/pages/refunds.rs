//! The refunds of all companies.

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
    #[serde(default)]
    state: String,
}

pub async fn list(session: Session, Query(filter): Query<Filter>) -> PageResult {
    let query = [("state", &*filter.state), ("limit", "100")];
    let found = session.get(&["refunds"], &query).await?;
    let columns = [
        column("Requested", |refund| Cell::time(&refund["created_at"])),
        column("Company", |refund| company_cell(&refund["company"])),
        column("Of", |refund| Cell::text(&refund["of"])),
        right("Amount", |refund| Cell::money(&refund["amount"], &refund["currency"])),
        column("State", |refund| Cell::state(&refund["state"])),
        column("Provider", |refund| Cell::text(&refund["payment_service"])),
        right("Requests", |refund| Cell::text(&refund["requests"])),
        column("Last error", |refund| Cell::text(&refund["last_error"])),
    ];
    let table = Table::new("Refunds", &found["refunds"], &columns, "There are no such refunds.");
    show_list(&session, "Refunds", table)
}
