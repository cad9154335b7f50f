//! The people and services that use the internal interface.

use crate::{
    format::{Cell, column},
    page::PageResult,
    pages::lists::{List, ListQuery, Paging},
    session::Session,
};

pub async fn list(session: Session, sent: ListQuery) -> PageResult {
    let columns = vec![
        column("Name", |operator| Cell::text(&operator["name"])),
        column("E-mail", |operator| Cell::text(&operator["email"])),
        column("Roles", |operator| Cell::text(&operator["roles"])),
        column("Companies", |operator| match operator["companies"].is_null() {
            true => Cell::Text("all".to_owned()),
            false => Cell::text(&operator["companies"]),
        }),
        column("Active", |operator| Cell::text(&operator["active"])),
        column("Created", |operator| Cell::time(&operator["created_at"])),
    ];
    let list = List {
        title: "Operators",
        source: &["operators"],
        paging: Paging::Whole,
        filters: &[],
        columns,
        empty: "There are no operators yet: use `tollhouse operator create`.",
    };
    list.show(&session, &sent).await
}
