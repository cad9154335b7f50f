//! The hosts on this database.

use serde_json::{Value, json};

use crate::{
    format::{Cell, column, plain, right},
    page::PageResult,
    pages::lists::{List, ListQuery, Paging},
    session::Session,
};

pub async fn list(session: Session, sent: ListQuery) -> PageResult {
    let columns = vec![
        column("Host", |host| Cell::code(&host["id"])),
        column("State", |host| Cell::state(&state(host))),
        column("Version", |host| Cell::text(&host["version"])),
        column("Runs jobs", |host| Cell::text(&host["runs_jobs"])),
        right("Jobs in progress", |host| Cell::text(&host["running_jobs"])),
        column("Started", |host| Cell::time(&host["started_at"])),
        column("Last report", |host| Cell::time(&host["seen_at"])),
        column("Serves", |host| Cell::List(served(host))),
    ];
    let list = List {
        title: "Hosts",
        source: &["hosts"],
        paging: Paging::Whole,
        filters: &[],
        columns,
        empty: "No host has reported yet. Each reports within 15 seconds of its start.",
    };
    list.show(&session, &sent).await
}

/// Returns the state of a host. Hosts that have stopped are not listed.
pub fn state(host: &Value) -> Value {
    match (host["is_lost"] == true, host["is_this_host"] == true) {
        (true, _) => json!("lost"),
        (false, true) => json!("live, this host"),
        (false, false) => json!("live"),
    }
}

/// Returns the plugin versions that a host serves.
fn served(host: &Value) -> Vec<String> {
    let versions = host["plugins"].as_array().into_iter().flatten();
    let text = |version: &Value| {
        let name = format!("{} {}", plain(&version["name"]), plain(&version["version"]));
        let canary = if version["state"] == "canary" { ", canary" } else { "" };
        let quarantined = if version["quarantined"] == true { ", quarantined" } else { "" };
        format!("{name}{canary}{quarantined}")
    };
    versions.map(text).collect()
}
