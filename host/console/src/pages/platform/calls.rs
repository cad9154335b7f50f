//! The numbers of plugin calls on all hosts, by hour.

use std::collections::BTreeMap;

use chrono::{DateTime, Duration, Utc};
use serde_json::{Value, json};

use super::plugins::{PARTS, duration, failed};
use crate::{
    api::ApiResult,
    chart::Chart,
    format::{Cell, Table, column, plain, right},
    session::Session,
};

const HOURS: usize = 24;

/// The calls of the last 24 hours.
pub struct Calls {
    pub chart: Chart,
    /// By plugin and version.
    pub table: Table,
}

/// Returns the calls of a plugin, or of all.
pub async fn fetch(session: &Session, plugin: Option<&str>) -> ApiResult<Calls> {
    let query = plugin.map(|plugin| ("plugin", plugin));
    let found = session.get(&["plugin-calls"], query.as_slice()).await?;
    let hours = found["hours"].as_array().map_or(&[][..], Vec::as_slice);
    let from = plain(&found["from"]).parse().unwrap_or_default();
    Ok(Calls { chart: chart(from, hours), table: table(session, hours) })
}

fn number(row: &Value, field: &str) -> u64 {
    row[field].as_u64().unwrap_or_default()
}

/// Draws the calls of each hour by outcome.
fn chart(from: DateTime<Utc>, hours: &[Value]) -> Chart {
    let mut by_hour = BTreeMap::<DateTime<Utc>, [u64; 3]>::new();
    for row in hours {
        let hour = plain(&row["hour"]).parse().unwrap_or_default();
        let (calls, ok, failed) = (number(row, "calls"), number(row, "ok"), number(row, "failed"));
        let parts = [ok, calls.saturating_sub(ok + failed), failed];
        let sums = by_hour.entry(hour).or_default();
        sums.iter_mut().zip(parts).for_each(|(sum, part)| *sum += part);
    }
    let bars = (0..HOURS as i64).map(|n| {
        let hour = from + Duration::hours(n);
        let parts = by_hour.get(&hour).copied().unwrap_or_default();
        (hour.format("%H").to_string(), parts.to_vec())
    });
    let bars: Vec<_> = bars.collect();
    Chart::new("Plugin calls by hour (UTC)", "at most {} an hour", PARTS, &bars)
}

/// Sums the hours by plugin and version.
fn table(session: &Session, hours: &[Value]) -> Table {
    let mut sums = BTreeMap::<(String, String), [u64; 4]>::new();
    for row in hours {
        let calls = number(row, "calls");
        let duration_us = number(row, "mean_us").saturating_mul(calls);
        let parts = [calls, number(row, "failed"), number(row, "unknown"), duration_us];
        let sums = sums.entry((plain(&row["plugin"]), plain(&row["version"]))).or_default();
        sums.iter_mut().zip(parts).for_each(|(sum, part)| *sum = sum.saturating_add(part));
    }
    #[expect(clippy::cast_precision_loss, reason = "a duration needs no more than 52 bits")]
    let row = |((plugin, version), [calls, failed, unknown, duration_us]): (_, [u64; 4])| {
        let mean_ms = duration_us as f64 / calls.max(1) as f64 / 1_000.0;
        json!({
            "plugin": plugin, "version": version, "calls": calls, "failed": failed,
            "unknown": unknown, "mean_ms": mean_ms,
        })
    };
    let columns = [
        column("Plugin", |row| {
            Cell::link(session.href(&["plugins", &plain(&row["plugin"])], &[]), &row["plugin"])
        }),
        column("Version", |row| Cell::text(&row["version"])),
        right("Calls", |row| Cell::text(&row["calls"])),
        right("Failed", failed),
        right("Unknown outcome", |row| Cell::text(&row["unknown"])),
        right("Mean", |row| duration(&row["mean_ms"])),
    ];
    let empty = "No plugin was called in the last 24 hours.";
    Table::new("Plugin calls", &sums.into_iter().map(row).collect(), &columns, empty)
}
