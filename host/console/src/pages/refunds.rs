//! The refunds of all companies.

use super::{
    company_cell,
    lists::{Declared, List, ListQuery, Paging},
};
use crate::{
    format::{Cell, column, money, right},
    page::PageResult,
    session::Session,
};

const FILTERS: Declared =
    &[("state", "State", &["requested", "pending", "stalled", "done", "refused", "failed"])];

pub async fn list(session: Session, sent: ListQuery) -> PageResult {
    let columns = vec![
        column("Requested", |refund| Cell::time(&refund["created_at"])),
        column("Company", |refund| company_cell(&session, &refund["company"])),
        column("Record", |refund| Cell::text(&refund["of"])),
        money("Amount", "amount", "currency"),
        column("State", |refund| Cell::state(&refund["state"])),
        column("Provider", |refund| Cell::text(&refund["payment_service"])),
        right("Requests", |refund| Cell::text(&refund["requests"])),
        column("Last error", |refund| Cell::text(&refund["last_error"])),
    ];
    let list = List {
        title: "Refunds",
        source: &["refunds"],
        paging: Paging::Cursor("refunds"),
        filters: FILTERS,
        columns,
        empty: "There are no such refunds.",
    };
    list.show(&session, &sent).await
}
