//! Items that need attention today, and the state of payments.

use std::collections::HashMap;

use askama::Template;
use chrono::{Days, NaiveDate};
use serde_json::Value;

use super::{
    home::{Tile, tiles},
    platform::calls::{self, Calls},
};
use crate::{
    api::ApiResult,
    chart::Chart,
    format::{Cell, Table, column, money, plain, right},
    page::{Frame, PageResult, render},
    session::Session,
};

const CHART_DAYS: u64 = 14;
/// The parts of a bar, which are fields of the interface.
const PARTS: &[&str] = &["succeeded", "pending", "failed"];

#[derive(Template)]
#[template(path = "today.html")]
struct TodayPage {
    frame: Frame,
    tiles: Vec<Tile>,
    /// For those who may see totals.
    money: Option<MoneySection>,
    /// For those who may see plugins.
    calls: Option<Calls>,
}

struct MoneySection {
    taken: Table,
    chart: Chart,
    providers: Table,
    pending: Table,
    collections: Table,
    queues: Table,
    wallets: Table,
}

pub async fn show(session: Session) -> PageResult {
    let money = match session.me.may("wallet.read") {
        true => Some(money_section(&session).await?),
        false => None,
    };
    let calls = match session.me.may("plugins.read") {
        true => Some(calls::fetch(&session, None).await?),
        false => None,
    };
    let (frame, tiles) = (Frame::new(&session, "Today", "Today"), tiles(&session).await?);
    render(&TodayPage { frame, tiles, money, calls })
}

async fn money_section(session: &Session) -> ApiResult<MoneySection> {
    let by_day = session.get(&["totals"], &[("by", "day")]).await?;
    let today = plain(&by_day["last_day"]);
    let query = [("by", "provider"), ("days", &*today)];
    let by_provider = session.get(&["totals"], &query).await?;
    let overview = session.get(&["overview"], &[]).await?;
    Ok(MoneySection {
        taken: taken(&by_provider["taken"]),
        chart: chart(&by_day["payments"], &today),
        providers: providers(&by_provider["payments"]),
        pending: pending(&overview["pending_payments"]),
        collections: collections(&overview["collections"]),
        queues: queues(&overview["queues"]),
        wallets: wallets(session, &overview["low_wallets"]),
    })
}

fn taken(rows: &Value) -> Table {
    let columns = [
        column("Kind", |row| Cell::text(&row["kind"])),
        column("Provider", |row| Cell::text(&row["provider"])),
        right("Count", |row| Cell::text(&row["number"])),
        money("Taken", "amount", "currency"),
        money("Fees", "fees", "currency"),
        money("Refunded", "refunded", "currency"),
        money("Reversed", "reversed", "currency"),
        money("Disputed", "disputed", "currency"),
    ];
    Table::new("Money today", rows, &columns, "No money was taken today.")
}

/// Draws the payments of the days up to `today`, `DD-MM-YYYY`.
fn chart(rows: &Value, today: &str) -> Chart {
    let rows = rows.as_array().map_or(&[][..], Vec::as_slice);
    let by_day: HashMap<String, &Value> =
        rows.iter().map(|row| (plain(&row["day"]).chars().take(10).collect(), row)).collect();
    let last = NaiveDate::parse_from_str(today, "%d-%m-%Y").unwrap_or_default();
    let numbers = (0..CHART_DAYS).rev().filter_map(|ago| last.checked_sub_days(Days::new(ago)));
    let numbers = numbers.map(|day| {
        let row = by_day.get(&day.format("%Y-%m-%d").to_string());
        let number = |part: &&str| row.and_then(|row| row[*part].as_u64()).unwrap_or_default();
        (day.format("%d %b").to_string(), PARTS.iter().map(number).collect())
    });
    Chart::new("Payments", "at most {} a day", PARTS, &numbers.collect::<Vec<_>>())
}

fn providers(rows: &Value) -> Table {
    let columns = [
        column("Provider", |row| Cell::text(&row["provider"])),
        column("Channel", |row| match &*plain(&row["channel"]) {
            "" => Cell::Text("unknown".to_owned()),
            channel => Cell::Text(channel.replace('_', " ")),
        }),
        right("Success rate", success_rate),
        right("Succeeded", |row| Cell::text(&row["succeeded"])),
        right("Failed", |row| Cell::text(&row["failed"])),
        right("Pending", |row| Cell::text(&row["pending"])),
        right("Refunded", |row| Cell::text(&row["refunded"])),
    ];
    Table::new("Payments by provider", rows, &columns, "No payment was created today.")
}

/// Returns the share of successes in the payments with an outcome.
fn success_rate(row: &Value) -> Cell {
    let number = |field: &str| row[field].as_u64().unwrap_or_default();
    let (succeeded, failed) = (number("succeeded"), number("failed"));
    match succeeded + failed {
        0 => Cell::Empty,
        // Rounded down: 100 % means that none failed.
        ended => Cell::Text(format!("{} %", succeeded * 100 / ended)),
    }
}

fn pending(rows: &Value) -> Table {
    let columns = [
        column("Age", |row| {
            let (from, before) = (plain(&row["from_hours"]), plain(&row["before_hours"]));
            Cell::Text(match &*before {
                "" => format!("{from} h or more"),
                _ => format!("{from} to {before} h"),
            })
        }),
        right("Payments", |row| Cell::text(&row["number"])),
    ];
    Table::new("Pending payments", rows, &columns, "")
}

fn collections(rows: &Value) -> Table {
    let columns = [
        right("Due", |row| Cell::text(&row["due"])),
        right("Recovered", |row| Cell::text(&row["recovered"])),
        right("Pending", |row| Cell::text(&row["pending"])),
        right("Not charged", |row| Cell::text(&row["not_charged"])),
        money("Charged", "charged_amount", "currency"),
        money("Recovered amount", "recovered_amount", "currency"),
    ];
    Table::new("Collections today", rows, &columns, "No installment was due today.")
}

fn queues(rows: &Value) -> Table {
    let columns = [
        column("Queue", |row| Cell::text(&row["name"])),
        right("Waiting", |row| Cell::text(&row["number"])),
        column("Oldest", |row| Cell::time(&row["oldest"])),
    ];
    Table::new("Queues", rows, &columns, "")
}

fn wallets(session: &Session, rows: &Value) -> Table {
    let columns = [
        column("Company", |row| {
            let href = session.href(&["companies", &plain(&row["company"]), "wallet"], &[]);
            Cell::link(href, &row["company_name"])
        }),
        money("Balance", "balance", "currency"),
        money("Threshold", "threshold", "currency"),
    ];
    Table::new("Low wallet balances", rows, &columns, "No wallet is below its threshold.")
}
