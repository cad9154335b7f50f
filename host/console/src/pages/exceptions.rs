//! Differences between charges and their providers, of all companies.

use super::{
    company_cell,
    lists::{Declared, List, ListQuery, Paging},
};
use crate::{
    format::{Cell, column, money},
    page::PageResult,
    session::Session,
};

const FILTERS: Declared = &[("state", "State", &["open", "resolved"])];

pub async fn list(session: Session, sent: ListQuery) -> PageResult {
    let columns = vec![
        column("Detected", |exception| Cell::time(&exception["created_at"])),
        column("Kind", |exception| Cell::state(&exception["kind"])),
        column("Company", |exception| company_cell(&exception["company"])),
        column("Charge of", |exception| Cell::text(&exception["owner_kind"])),
        column("Provider", |exception| Cell::text(&exception["payment_service"])),
        money("Requested", "expected", "currency"),
        money("At the provider", "seen", "seen_currency"),
        column("State", |exception| Cell::state(&exception["state"])),
        column("Reason", |exception| Cell::text(&exception["reason"])),
    ];
    let list = List {
        title: "Exceptions",
        source: &["exceptions"],
        paging: Paging::Cursor("exceptions"),
        filters: FILTERS,
        columns,
        empty: "There are no such exceptions.",
    };
    list.show(&session, &sent).await
}
