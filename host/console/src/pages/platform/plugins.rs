//! Plugins: their versions, the calls of each on this host, and the hosts that serve them.

use askama::Template;
use axum::extract::Path;
use serde_json::{Value, json};

use super::{
    calls::{self, Calls},
    hosts, recordings,
};
use crate::{
    api::ApiResult,
    chart::Chart,
    format::{Cell, Table, column, plain, right},
    page::{Frame, PageResult, render},
    pages::{
        Fact, Parent, company_cell,
        lists::{List, ListQuery, Paging, is_export},
    },
    session::Session,
};

/// Digits of a digest that are shown.
const DIGEST_DIGITS: usize = 12;

#[derive(Template)]
#[template(path = "plugins.html")]
struct PluginsPage {
    frame: Frame,
    table: Table,
}

pub async fn list(session: Session, sent: ListQuery) -> PageResult {
    let columns = vec![
        column("Plugin", |version| {
            let href = session.href(&["plugins", &plain(&version["name"])], &[]);
            Cell::link(href, &version["name"])
        }),
        column("Version", |version| Cell::text(&version["version"])),
        column("State", |version| Cell::state(&state(version))),
        right("Canary share", share),
        right("Calls", |version| Cell::text(&version["calls"]["calls"])),
        right("Failed", |version| failed(&version["calls"])),
        right("p99", |version| duration(&version["calls"]["p99_ms"])),
        column("Publisher", |version| Cell::text(&version["publisher"])),
        column("Active since", |version| Cell::time(&version["active_at"])),
        column("Quarantined", |version| Cell::time(&version["quarantined_at"])),
    ];
    let list = List {
        title: "Plugins",
        source: &["plugins"],
        paging: Paging::Whole,
        filters: &[],
        columns,
        empty: "No plugin is installed.",
    };
    if is_export(&sent) {
        return Ok(list.export(&session, &sent).await?);
    }
    let (_, table, _) = list.fetch(&session, &sent).await?;
    render(&PluginsPage { frame: Frame::new(&session, "Plugins", "Plugins"), table })
}

#[derive(Template)]
#[template(path = "plugin.html")]
struct PluginPage {
    frame: Frame,
    parent: Option<Parent>,
    versions: Table,
    calls: Table,
    /// Compares the active version with the canary, if both were called.
    chart: Option<Chart>,
    /// The calls on all hosts.
    by_hour: Calls,
    circuits: Table,
    /// The grants of each serving version.
    grants: Vec<(String, Vec<Fact>)>,
    /// For those who may see hosts.
    hosts: Option<Table>,
    /// For those who may see recorded calls: the latest ones, and the page of all.
    recordings: Option<(Table, String)>,
}

pub async fn show(session: Session, Path(plugin): Path<String>) -> PageResult {
    let found = session.get(&["plugins", &plugin], &[]).await?;
    let versions = found.as_array().map_or(&[][..], Vec::as_slice);
    let serving: Vec<&Value> = versions.iter().filter(|v| !v["calls"].is_null()).collect();
    let href = session.href(&["plugins"], &[]);
    render(&PluginPage {
        frame: Frame::new(&session, "Plugins", &*plugin),
        parent: Some(Parent { href, label: "Plugins".to_owned() }),
        versions: versions_table(&found),
        calls: calls_table(&json!(serving)),
        chart: chart(&serving),
        by_hour: calls::fetch(&session, Some(&plugin)).await?,
        circuits: circuits(&session, &serving),
        grants: serving.iter().map(|version| (label(version), grants(version))).collect(),
        hosts: match session.me.may("hosts.read") {
            true => Some(hosts_table(&session, &plugin).await?),
            false => None,
        },
        recordings: match session.me.may("recordings.read") {
            true => Some(recordings::latest(&session, &plugin).await?),
            false => None,
        },
    })
}

fn state(version: &Value) -> Value {
    match version["quarantined_at"].is_null() {
        true => version["state"].clone(),
        false => json!("quarantined"),
    }
}

/// Names a version in a list of serving ones.
fn label(version: &Value) -> String {
    format!("{}, {}", plain(&version["version"]), plain(&state(version)))
}

fn share(version: &Value) -> Cell {
    let companies = version["companies"].as_array().map_or(0, Vec::len);
    let mut shares = Vec::new();
    if let Some(percent @ 1..) = version["percent"].as_i64() {
        shares.push(format!("{percent} %"));
    }
    match companies {
        0 => {}
        1 => shares.push("1 company".to_owned()),
        n => shares.push(format!("{n} companies")),
    }
    match shares.is_empty() {
        true => Cell::Empty,
        false => Cell::Text(shares.join(" and ")),
    }
}

/// Formats the failed calls with their share of all.
pub fn failed(calls: &Value) -> Cell {
    match (calls["failed"].as_u64(), calls["calls"].as_u64()) {
        (Some(failed @ 1..), Some(all)) => {
            let share = percent(failed, all);
            Cell::Text(format!("{failed} ({share} %)"))
        }
        _ => Cell::text(&calls["failed"]),
    }
}

/// Returns a share in percent with one decimal, which is 0 only if there are none.
#[expect(clippy::cast_precision_loss, reason = "a share needs no more than 52 bits")]
fn percent(part: u64, all: u64) -> String {
    let share = part as f64 * 100.0 / all.max(1) as f64;
    if share < 0.1 { "< 0.1".to_owned() } else { format!("{share:.1}") }
}

pub fn duration(ms: &Value) -> Cell {
    match ms.as_f64() {
        Some(ms) if ms >= 1_000.0 => Cell::Text(format!("{:.2} s", ms / 1_000.0)),
        Some(ms) if ms >= 100.0 => Cell::Text(format!("{ms:.0} ms")),
        Some(ms) => Cell::Text(format!("{ms:.2} ms")),
        None => Cell::Empty,
    }
}

fn versions_table(versions: &Value) -> Table {
    let columns = [
        column("Version", |version| Cell::text(&version["version"])),
        column("State", |version| Cell::state(&state(version))),
        right("Canary share", share),
        column("Digest", |version| {
            Cell::Code(plain(&version["digest"]).chars().take(DIGEST_DIGITS).collect())
        }),
        column("Publisher", |version| Cell::text(&version["publisher"])),
        column("Installed", |version| Cell::time(&version["installed_at"])),
        column("Active since", |version| Cell::time(&version["active_at"])),
        column("Quarantined", |version| Cell::time(&version["quarantined_at"])),
    ];
    Table::new("Versions", versions, &columns, "No version is installed.")
}

fn calls_table(serving: &Value) -> Table {
    let columns = [
        column("Version", |version| Cell::text(&version["version"])),
        column("State", |version| Cell::state(&state(version))),
        right("Calls", |version| Cell::text(&version["calls"]["calls"])),
        right("Failed", |version| failed(&version["calls"])),
        right("Unknown outcome", |version| Cell::text(&version["calls"]["unknown"])),
        right("Median", |version| duration(&version["calls"]["p50_ms"])),
        right("p99", |version| duration(&version["calls"]["p99_ms"])),
        column("Outcomes", |version| Cell::pairs(&version["calls"]["outcomes"])),
    ];
    Table::new("Calls", serving, &columns, "No version serves on this host.")
}

/// The parts of a bar: calls with a result, with another answer such as a declined card, and failed
/// ones.
pub const PARTS: &[&str] = &["ok", "declined", "failed"];

/// Draws the outcomes of each version in the same scale, so that a small canary can be compared.
fn chart(serving: &[&Value]) -> Option<Chart> {
    let bar = |version: &&Value| {
        let number = |value: &Value| value.as_u64().unwrap_or_default();
        let calls = &version["calls"];
        let (all, failed) = (number(&calls["calls"]), number(&calls["failed"]));
        let ok = number(&calls["outcomes"]["ok"]);
        // Rounded up, so that each outcome that occurred is seen.
        let per_thousand = |part: u64| (part * 1_000).div_ceil(all.max(1));
        let (failed, declined) =
            (per_thousand(failed), per_thousand(all.saturating_sub(ok + failed)));
        let ok = 1_000_u64.saturating_sub(failed + declined);
        (all > 0).then(|| (label(version), vec![ok, declined, failed]))
    };
    let bars: Vec<_> = serving.iter().filter_map(bar).collect();
    let draw = || Chart::new("Outcomes", "of 1,000 calls of each version", PARTS, &bars);
    (bars.len() > 1).then(draw)
}

fn circuits(session: &Session, serving: &[&Value]) -> Table {
    let rows = serving.iter().flat_map(|version| {
        let open = version["open_circuits"].as_array().into_iter().flatten();
        open.map(|circuit| json!({ "version": version["version"], "circuit": circuit }))
    });
    let columns = [
        column("Version", |row| Cell::text(&row["version"])),
        column("Rejects", |row| {
            let Value::String(company) = &row["circuit"]["company"] else {
                return Cell::Text("requests of an account to an origin".to_owned());
            };
            Cell::Text(match company.is_empty() {
                true => "calls for the service".to_owned(),
                false => "calls for a company".to_owned(),
            })
        }),
        column("Company", |row| company_cell(session, &row["circuit"]["company"])),
        column("Origin", |row| Cell::code(&row["circuit"]["origin"])),
        right("Next probe", |row| match row["circuit"]["retry_after_s"].as_u64() {
            Some(seconds @ 1..) => Cell::Text(format!("in {seconds} s")),
            _ => Cell::Text("due".to_owned()),
        }),
    ];
    let empty = "No circuit breaker is open on this host.";
    Table::new("Open circuits", &rows.collect(), &columns, empty)
}

/// Returns the grants of a serving version.
fn grants(version: &Value) -> Vec<Fact> {
    let texts = |value: &Value| match value {
        Value::Array(texts) => Cell::List(texts.iter().map(plain).collect()),
        Value::Object(named) => Cell::List(named.keys().cloned().collect()),
        _ => Cell::Empty,
    };
    let manifest = &version["manifest"];
    let granted = match &version["granted"] {
        Value::Null => Cell::Text("All requested capabilities".to_owned()),
        granted => texts(granted),
    };
    vec![
        ("Granted capabilities", granted),
        ("Hosts", texts(&manifest["hosts"])),
        ("Settings", texts(&manifest["settings"])),
        ("Interfaces", texts(&version["interfaces"])),
        ("Currencies", texts(&manifest["currencies"])),
    ]
}

/// Returns the hosts with the versions of a plugin that each serves.
async fn hosts_table(session: &Session, plugin: &str) -> ApiResult<Table> {
    let found = session.get(&["hosts"], &[]).await?;
    let columns = [
        column("Host", |host| Cell::code(&host["id"])),
        column("State", |host| Cell::state(&hosts::state(host))),
        column("Serves", |host| {
            let versions = host["plugins"].as_array().into_iter().flatten();
            let own = versions.filter(|version| version["name"] == plugin);
            let text = |version: &Value| {
                format!("{}, {}", plain(&version["version"]), plain(&version["state"]))
            };
            Cell::List(own.map(text).collect())
        }),
        column("Last report", |host| Cell::time(&host["seen_at"])),
    ];
    Ok(Table::new("Hosts", &found, &columns, "No host has reported yet."))
}
