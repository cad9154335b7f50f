//! Differences between charges and their providers, of all companies.

use askama::Template;
use axum::extract::{Form as FormBody, Path};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    Parent, company_cell,
    lists::{Declared, List, ListQuery, Paging},
};
use crate::{
    format::{Cell, column, money, plain},
    page::{Frame, PageResult, render},
    session::Session,
};

const FILTERS: Declared = &[("state", "State", &["open", "resolved"])];

pub async fn list(session: Session, sent: ListQuery) -> PageResult {
    let columns = vec![
        column("Detected", |exception| Cell::time(&exception["created_at"])),
        column("Kind", |exception| Cell::state(&exception["kind"])),
        column("Company", |exception| company_cell(&session, &exception["company"])),
        column("Charge of", |exception| Cell::text(&exception["owner_kind"])),
        column("Provider", |exception| Cell::text(&exception["payment_service"])),
        money("Requested", "expected", "currency"),
        money("At the provider", "seen", "seen_currency"),
        column("State", |exception| Cell::state(&exception["state"])),
        column("Reason", |exception| Cell::text(&exception["reason"])),
        column("", |exception| match exception["state"] == "open" {
            true => resolve_link(&session, exception),
            false => Cell::Empty,
        }),
    ];
    let list = List {
        title: "Exceptions",
        source: &["exceptions"],
        paging: Paging::Cursor("exceptions"),
        filters: FILTERS,
        columns,
        empty: "There are no such exceptions.",
    };
    list.show(&session, &sent).await
}

fn resolve_link(session: &Session, exception: &Value) -> Cell {
    let [company, id] = ["company", "id"].map(|field| plain(&exception[field]));
    let href = session.href(&["companies", &company, "exceptions", &id], &[]);
    match session.me.may("exceptions.resolve") {
        true => Cell::Link { href, text: "Resolve".to_owned() },
        false => Cell::Empty,
    }
}

#[derive(Template)]
#[template(path = "resolve.html")]
struct ResolvePage {
    frame: Frame,
    parent: Option<Parent>,
}

/// Shows the form that resolves an exception.
pub async fn show(session: Session) -> PageResult {
    let (href, label) = (session.href(&["exceptions"], &[]), "Exceptions".to_owned());
    let frame = Frame::new(&session, "Exceptions", "Resolve an exception");
    render(&ResolvePage { frame, parent: Some(Parent { href, label }) })
}

#[derive(Deserialize)]
pub struct Resolution {
    form_token: String,
    action: String,
    reason: String,
}

pub async fn resolve(
    session: Session,
    Path((company, id)): Path<(String, String)>,
    FormBody(sent): FormBody<Resolution>,
) -> PageResult {
    session.check_form(&sent.form_token)?;
    let body = json!({ "action": sent.action, "reason": sent.reason });
    session.post(&["companies", &company, "exceptions", &id, "resolve"], &body).await?;
    session.redirect(&["exceptions"])
}
