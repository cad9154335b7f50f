//! The pages, one file each.

pub mod access;
pub mod companies;
pub mod exceptions;
pub mod finance;
pub mod home;
pub mod jobs;
pub mod lists;
pub mod plugins;
pub mod refunds;
pub mod today;

use askama::Template;
use serde::Deserialize;
use serde_json::Value;

use crate::{
    api::ApiResult,
    format::{Cell, Table, plain},
    page::Frame,
    session::Session,
};

/// The hidden field of a form.
#[derive(Deserialize)]
pub struct Form {
    form_token: String,
}

/// A link back to the page above.
struct Parent {
    href: String,
    label: String,
}

impl Parent {
    /// Returns the list of companies; for a person who is limited to some, the first page.
    fn of_company(session: &Session) -> Parent {
        let all: &[&str] = if session.me.companies.is_none() { &["companies"] } else { &[] };
        Parent { href: session.href(all, &[]), label: "Companies".to_owned() }
    }
}

/// A page with one table.
#[derive(Template)]
#[template(path = "list.html")]
struct ListPage {
    frame: Frame,
    parent: Option<Parent>,
    /// Pages of the same company.
    tabs: Vec<Tab>,
    filters: Vec<lists::Filter>,
    table: Table,
}

/// A page of a company.
struct Tab {
    href: String,
    label: &'static str,
    is_current: bool,
}

/// The pages of a company, with the permission of each.
const TABS: &[(&str, &str, &str)] = &[
    ("", "Overview", "companies.read"),
    ("users", "Customers", "users.read"),
    ("payments", "Payments", "payments.read"),
    ("recollections", "Repayments", "lending.read"),
    ("messages", "Messages", "messages.read"),
    ("events", "Events", "events.read"),
    ("wallet", "Wallet", "wallet.read"),
    ("statement", "Statement", "wallet.read"),
    ("totals", "Totals", "wallet.read"),
    ("audit", "Audit log", "audit.read"),
];

fn tabs(session: &Session, company: &str, current: &str) -> Vec<Tab> {
    let allowed = TABS.iter().filter(|(_, _, permission)| session.me.may(permission));
    let tab = |(page, label, _): &(&str, &'static str, &str)| {
        let segments = ["companies", company, page];
        let segments = if page.is_empty() { &segments[..2] } else { &segments[..] };
        let href = session.href(segments, &[]);
        Tab { href, label, is_current: *label == current }
    };
    allowed.map(tab).collect()
}

/// Returns the name of a company, or its id without the permission to read it.
async fn company_name(session: &Session, company: &str) -> ApiResult<String> {
    if !session.me.may("companies.read") {
        return Ok(company.to_owned());
    }
    let found = session.get(&["companies", company], &[]).await?;
    Ok(plain(&found["name"]))
}

/// Returns a cell that links a company by its id.
fn company_cell(session: &Session, id: &Value) -> Cell {
    match plain(id) {
        id if id.is_empty() => Cell::Empty,
        id => {
            let href = session.href(&["companies", &id], &[]);
            Cell::Link { href, text: id }
        }
    }
}

/// A fact of a record: its name and its value.
type Fact = (&'static str, Cell);
