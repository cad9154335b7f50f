//! The first page: one search for everything, and the items that need attention.

use askama::Template;
use axum::{
    extract::{Query, State},
    response::{IntoResponse, Redirect},
};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{ListPage, company_name};
use crate::{
    Console,
    api::ApiResult,
    format::{Cell, Table, column, plain},
    page::{Frame, PageResult, first_page, render},
    session::Session,
};

#[derive(Deserialize)]
pub struct Search {
    #[serde(default)]
    q: String,
}

/// The number of open items, with the page that lists them.
pub struct Tile {
    pub label: &'static str,
    pub count: u64,
    /// Path and query under the root of the site.
    pub path: &'static str,
}

#[derive(Template)]
#[template(path = "home.html")]
struct Home {
    frame: Frame,
    q: String,
    /// Whether the person may search for requests by their id.
    finds_requests: bool,
    results: Option<Table>,
    tiles: Vec<Tile>,
}

pub async fn show(
    State(_): State<Console>,
    session: Session,
    Query(Search { q }): Query<Search>,
) -> PageResult {
    if let Some(companies) = &session.me.companies {
        if let [only] = &companies[..]
            && let Some(first) = first_page(&session, only)
        {
            return Ok(Redirect::to(&first).into_response());
        }
        return show_own_companies(&session, companies).await;
    }
    let (q, finds_requests) =
        (q.trim().to_owned(), session.me.may("audit.read") || session.me.may("requests.read"));
    if q.is_empty() {
        let (frame, tiles) = (Frame::new(&session, "Search", "Search"), tiles(&session).await?);
        return render(&Home { frame, q, finds_requests, results: None, tiles });
    }
    let found = session.get(&["search"], &[("q", &q)]).await?;
    if let [only] = found.as_array().map_or(&[][..], Vec::as_slice)
        && let Some(href) = href(&session, only, &q)
    {
        return Ok(Redirect::to(&href).into_response());
    }
    let columns = [
        column("Found", |hit| match href(&session, hit, &q) {
            Some(href) => Cell::link(href, &hit["title"]),
            None => Cell::text(&hit["title"]),
        }),
        column("Kind", |hit| Cell::Text(plain(&hit["kind"]).replace('_', " "))),
        column("State", |hit| Cell::state(&hit["state"])),
        column("Company", |hit| Cell::text(&hit["company_name"])),
        column("Created", |hit| Cell::time(&hit["created_at"])),
    ];
    let empty = "No matches. Enter the complete reference, id, e-mail address, phone number or \
                 amount, or the id of a request.";
    let table = Table::new("Search results", &found, &columns, empty);
    drop(columns);
    let frame = Frame::new(&session, "Search", format!("Search: {q}"));
    render(&Home { frame, q, finds_requests, results: Some(table), tiles: Vec::new() })
}

/// Shows the companies to which a person is limited.
async fn show_own_companies(session: &Session, companies: &[String]) -> PageResult {
    let mut own = Vec::new();
    for company in companies {
        own.push(json!({ "id": company, "name": company_name(session, company).await? }));
    }
    let columns = [column("Company", |company| {
        Cell::link(session.href(&["companies", &plain(&company["id"])], &[]), &company["name"])
    })];
    let table = Table::new("Companies", &json!(own), &columns, "There are no companies.");
    let frame = Frame::new(session, "Search", "Companies");
    render(&ListPage { frame, parent: None, form: None, filters: Vec::new(), views: None, table })
}

/// Returns the page of a search result, if it has one. `q`: the text that was searched.
fn href(session: &Session, hit: &Value, q: &str) -> Option<String> {
    let (company, id) = (plain(&hit["company"]), plain(&hit["id"]));
    match hit["kind"].as_str()? {
        "company" => Some(session.href(&["companies", &company], &[])),
        "payment" => Some(session.href(&["companies", &company, "payments", &id], &[])),
        "user" => Some(session.href(&["companies", &company, "users", &id], &[])),
        "recollection" => Some(session.href(&["companies", &company, "recollections", &id], &[])),
        // The entries of one request.
        "audit_entry" if company.is_empty() => Some(session.href(&["audit"], &[("request_id", q)])),
        "audit_entry" => {
            Some(session.href(&["companies", &company, "audit"], &[("request_id", q)]))
        }
        "api_request" => {
            Some(session.href(&["companies", &company, "requests"], &[("request_id", q)]))
        }
        _ => None,
    }
}

/// A list of items that need attention.
struct TileSource {
    permission: &'static str,
    /// The list of the interface, and its filter.
    list: &'static str,
    filter: (&'static str, &'static str),
    label: &'static str,
    path: &'static str,
}

const TILES: &[TileSource] = &[
    TileSource {
        permission: "refunds.read",
        list: "exceptions",
        filter: ("state", "open"),
        label: "Open exceptions",
        path: "/exceptions?state=open",
    },
    TileSource {
        permission: "refunds.read",
        list: "disputes",
        filter: ("state", "open"),
        label: "Open disputes",
        path: "/disputes?state=open",
    },
    TileSource {
        permission: "refunds.read",
        list: "refunds",
        filter: ("state", "stalled"),
        label: "Stalled refunds",
        path: "/refunds?state=stalled",
    },
    TileSource {
        permission: "jobs.read",
        list: "jobs",
        filter: ("limit", "1"),
        label: "Failing jobs",
        path: "/jobs",
    },
    TileSource {
        permission: "approvals.read",
        list: "approvals",
        filter: ("state", "pending"),
        label: "Pending approvals",
        path: "/approvals?state=pending",
    },
];

pub async fn tiles(session: &Session) -> ApiResult<Vec<Tile>> {
    let mut tiles = Vec::new();
    for &TileSource { permission, list, filter, label, path } in TILES {
        if session.me.may(permission) {
            let found = session.get(&[list], &[filter]).await?;
            // A page has a total; a part of a feed is counted.
            let listed = || found.as_object()?.values().find_map(Value::as_array).map(Vec::len);
            let count = found["total"].as_u64().or_else(|| listed()?.try_into().ok());
            tiles.push(Tile { label, count: count.unwrap_or_default(), path });
        }
    }
    Ok(tiles)
}
