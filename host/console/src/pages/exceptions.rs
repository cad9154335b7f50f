//! Differences between charges and their providers, of all companies.

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

const FILTERS: Declared = &[("state", "State", &["open", "resolved"])];

pub async fn list(session: Session, sent: ListQuery) -> PageResult {
    let list = Filtered::new(&sent, FILTERS);
    let state = &*list.filters[0].value;
    let found = session.get(&["exceptions"], &[("state", state), ("limit", "100")]).await?;
    let columns = [
        column("Detected", |exception| Cell::time(&exception["created_at"])),
        column("Kind", |exception| Cell::state(&exception["kind"])),
        column("Company", |exception| company_cell(&exception["company"])),
        column("Charge of", |exception| Cell::text(&exception["owner_kind"])),
        column("Provider", |exception| Cell::text(&exception["payment_service"])),
        right("Requested", |e| Cell::money(&e["expected"], &e["currency"])),
        right("At the provider", |e| Cell::money(&e["seen"], &e["seen_currency"])),
        column("State", |exception| Cell::state(&exception["state"])),
        column("Reason", |exception| Cell::text(&exception["reason"])),
    ];
    let empty = "There are no such exceptions.";
    let table = Table::new("Exceptions", &found["exceptions"], &columns, empty);
    show_list(&session, "Exceptions", list.filters, table)
}
