//! The e-mails and text messages of a company.

use axum::extract::Path;

use crate::pages::{
    filters::{Declared, Filtered, ListQuery},
    show_company_list,
};
use crate::{
    format::{Cell, Table, column},
    page::PageResult,
    session::Session,
};

const FILTERS: Declared = &[
    ("state", "State", &["pending", "delivered", "failed"]),
    ("channel", "Channel", &["email", "sms"]),
];

pub async fn list(session: Session, Path(company): Path<String>, sent: ListQuery) -> PageResult {
    let list = Filtered::new(&sent, FILTERS);
    let found = session.get(&["companies", &company, "messages"], &list.query()).await?;
    let columns = [
        column("Created", |message| Cell::time(&message["created_at"])),
        column("To", |message| Cell::text(&message["to"])),
        column("Channel", |message| Cell::text(&message["channel"])),
        column("Purpose", |message| Cell::text(&message["purpose"])),
        column("State", |message| Cell::state(&message["state"])),
        column("Via", |message| Cell::text(&message["via"])),
        column("Reason", |message| Cell::text(&message["reason"])),
    ];
    let table = Table::new("Messages", &found["docs"], &columns, "There are no such messages.");
    let page = |page| list.page(&["console", "companies", &company, "messages"], page);
    let table = table.paged(&found, page);
    show_company_list(&session, &company, "Messages", list.filters, table).await
}
