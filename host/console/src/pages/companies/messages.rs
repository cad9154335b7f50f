//! The e-mails and text messages of a company.

use axum::extract::{Path, Query};

use crate::pages::{PAGE_SIZE, PageQuery, show_company_list};
use crate::{
    api::path,
    format::{Cell, Table, column},
    page::PageResult,
    session::Session,
};

pub async fn list(
    session: Session,
    Path(company): Path<String>,
    Query(query): Query<PageQuery>,
) -> PageResult {
    let query = [("page", &*query.page), ("limit", PAGE_SIZE)];
    let found = session.get(&["companies", &company, "messages"], &query).await?;
    let columns = [
        column("Created", |message| Cell::time(&message["created_at"])),
        column("To", |message| Cell::text(&message["to"])),
        column("Channel", |message| Cell::text(&message["channel"])),
        column("Purpose", |message| Cell::text(&message["purpose"])),
        column("State", |message| Cell::state(&message["state"])),
        column("Via", |message| Cell::text(&message["via"])),
        column("Reason", |message| Cell::text(&message["reason"])),
    ];
    let table = Table::new("Messages", &found["docs"], &columns, "There are no messages yet.");
    let page = |page: u64| {
        path(&["console", "companies", &company, "messages"], &[("page", &page.to_string())])
    };
    show_company_list(&session, &company, "Messages", table.paged(&found, page)).await
}
