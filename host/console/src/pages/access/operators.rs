//! The people and services that use the internal interface.

use crate::pages::show_list;
use crate::{
    format::{Cell, Table, column},
    page::PageResult,
    session::Session,
};

pub async fn list(session: Session) -> PageResult {
    let found = session.get(&["operators"], &[]).await?;
    let columns = [
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
    let empty = "There are no operators yet: use `tollhouse operator create`.";
    show_list(&session, "Operators", Vec::new(), Table::new("Operators", &found, &columns, empty))
}
