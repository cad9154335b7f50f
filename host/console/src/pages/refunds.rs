//! The refunds of all companies.

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

const FILTERS: Declared =
    &[("state", "State", &["requested", "pending", "stalled", "done", "refused", "failed"])];

pub async fn list(session: Session, sent: ListQuery) -> PageResult {
    let list = Filtered::new(&sent, FILTERS);
    let state = &*list.filters[0].value;
    let found = session.get(&["refunds"], &[("state", state), ("limit", "100")]).await?;
    let columns = [
        column("Requested", |refund| Cell::time(&refund["created_at"])),
        column("Company", |refund| company_cell(&refund["company"])),
        column("Charge of", |refund| Cell::text(&refund["of"])),
        right("Amount", |refund| Cell::money(&refund["amount"], &refund["currency"])),
        column("State", |refund| Cell::state(&refund["state"])),
        column("Provider", |refund| Cell::text(&refund["payment_service"])),
        right("Requests", |refund| Cell::text(&refund["requests"])),
        column("Last error", |refund| Cell::text(&refund["last_error"])),
    ];
    let table = Table::new("Refunds", &found["refunds"], &columns, "There are no such refunds.");
    show_list(&session, "Refunds", list.filters, table)
}
