//! Plugins and their versions.

use super::lists::{List, ListQuery, Paging};
use crate::{
    format::{Cell, column, right},
    page::PageResult,
    session::Session,
};

pub async fn list(session: Session, sent: ListQuery) -> PageResult {
    let columns = vec![
        column("Plugin", |plugin| Cell::text(&plugin["name"])),
        column("Version", |plugin| Cell::text(&plugin["version"])),
        column("State", |plugin| Cell::state(&plugin["state"])),
        right("Canary share", |plugin| match plugin["percent"].as_i64() {
            Some(percent) if percent > 0 => Cell::Text(format!("{percent} %")),
            _ => Cell::Empty,
        }),
        column("Publisher", |plugin| Cell::text(&plugin["publisher"])),
        column("Interfaces", |plugin| Cell::text(&plugin["interfaces"])),
        column("Active since", |plugin| Cell::time(&plugin["active_at"])),
        column("Quarantined", |plugin| Cell::time(&plugin["quarantined_at"])),
    ];
    let list = List {
        title: "Plugins",
        source: &["plugins"],
        paging: Paging::Whole,
        filters: &[],
        columns,
        empty: "No plugin is installed.",
    };
    list.show(&session, &sent).await
}
