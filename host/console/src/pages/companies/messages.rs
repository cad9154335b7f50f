//! The e-mails and text messages of a company.

use axum::extract::Path;

use crate::{
    format::{Cell, Column, column, right},
    page::PageResult,
    pages::lists::{Declared, List, ListQuery, Paging},
    session::Session,
};

const FILTERS: Declared = &[
    ("to", "Complete phone number (+234…) or e-mail address", &[]),
    ("state", "State", &["pending", "delivered", "failed"]),
    ("channel", "Channel", &["email", "sms"]),
];

/// The columns of messages.
pub fn columns() -> Vec<Column<'static>> {
    vec![
        column("Created", |message| Cell::time(&message["created_at"])),
        column("To", |message| Cell::text(&message["to"])),
        column("Channel", |message| Cell::text(&message["channel"])),
        column("Purpose", |message| Cell::text(&message["purpose"])),
        column("State", |message| Cell::state(&message["state"])),
        right("Attempts", |message| Cell::text(&message["attempts"])),
        column("Sent by", |message| Cell::text(&message["via"])),
        column("Reason", |message| Cell::text(&message["reason"])),
    ]
}

pub async fn list(session: Session, Path(company): Path<String>, sent: ListQuery) -> PageResult {
    let list = List {
        title: "Messages",
        source: &["companies", &company, "messages"],
        paging: Paging::Numbered,
        filters: FILTERS,
        columns: columns(),
        empty: "There are no such messages.",
    };
    list.show_of_company(&session, &company, &sent).await
}
