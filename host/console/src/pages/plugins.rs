//! Plugins and their versions.

use super::show_list;
use crate::{
    format::{Cell, Table, column, right},
    page::PageResult,
    session::Session,
};

pub async fn list(session: Session) -> PageResult {
    let found = session.get(&["plugins"], &[]).await?;
    let columns = [
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
    let table = Table::new("Plugins", &found, &columns, "No plugin is installed.");
    show_list(&session, "Plugins", Vec::new(), table)
}
