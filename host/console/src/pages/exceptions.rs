//! Differences between records and their providers, of all companies.

use askama::Template;
use axum::extract::{Form as FormBody, Path};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    Fact, Parent, charge_cell, company_cell,
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
        column("Record", |exception| Cell::text(&exception["owner_kind"])),
        column("Provider", |exception| Cell::text(&exception["payment_service"])),
        money("Requested or recorded", "expected", "currency"),
        money("At the provider", "seen", "seen_currency"),
        column("State", |exception| Cell::state(&exception["state"])),
        column("Owner", |exception| Cell::text(&exception["owner"])),
        column("Reason", |exception| Cell::text(&exception["reason"])),
        column("", |exception| show_link(&session, exception)),
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

/// Returns the link to the page of an exception, for those who may resolve it.
pub fn show_link(session: &Session, exception: &Value) -> Cell {
    let id = Named {
        company: exception["company"].as_str().map(str::to_owned),
        exception: plain(&exception["id"]),
    };
    let href = session.href(&id.path(), &[]);
    match session.me.may("exceptions.resolve") {
        true if exception["state"] == "open" => Cell::Link { href, text: "Resolve".to_owned() },
        true => Cell::Link { href, text: "Show".to_owned() },
        false => Cell::Empty,
    }
}

/// The names in the path of an exception: without a company if its charge is not known.
#[derive(Deserialize)]
pub struct Named {
    company: Option<String>,
    exception: String,
}

impl Named {
    /// The segments of its path, in the interface and on the console.
    fn path(&self) -> Vec<&str> {
        let company = self.company.as_ref().map(|company| ["companies", company]);
        let own = ["exceptions", &*self.exception];
        company.iter().flatten().copied().chain(own).collect()
    }
}

#[derive(Template)]
#[template(path = "exception.html")]
struct ExceptionPage {
    frame: Frame,
    parent: Option<Parent>,
    facts: Vec<Fact>,
    notes: Vec<Note>,
    is_open: bool,
    is_mine: bool,
    is_of_reconciliation: bool,
    has_company: bool,
    /// The path to which the form that edits the exception posts.
    edit: String,
}

struct Note {
    at: Cell,
    by: String,
    text: String,
}

/// Shows an exception, its notes, and the form that resolves it.
pub async fn show(session: Session, Path(named): Path<Named>) -> PageResult {
    let exception = session.get(&named.path(), &[]).await?;
    let (href, label) = (session.href(&["exceptions"], &[]), "Exceptions".to_owned());
    let notes = exception["notes"].as_array().into_iter().flatten().map(|note| Note {
        at: Cell::time(&note["at"]),
        by: plain(&note["by"]),
        text: plain(&note["text"]),
    });
    render(&ExceptionPage {
        frame: Frame::new(&session, "Exceptions", "Exception"),
        parent: Some(Parent { href, label }),
        facts: facts(&session, &exception),
        notes: notes.collect(),
        is_open: exception["state"] == "open",
        is_mine: plain(&exception["owner"]) == session.me.name,
        is_of_reconciliation: !exception["day"].is_null(),
        has_company: named.company.is_some(),
        edit: session.href(&[&named.path()[..], &["edit"]].concat(), &[]),
    })
}

fn facts(session: &Session, exception: &Value) -> Vec<Fact> {
    let company = plain(&exception["company"]);
    let charged = charge_cell(session, exception, &company, &exception["owner_id"]);
    vec![
        ("Kind", Cell::state(&exception["kind"])),
        ("State", Cell::state(&exception["state"])),
        ("Company", company_cell(session, &exception["company"])),
        ("Record", charged),
        ("Provider", Cell::text(&exception["payment_service"])),
        ("Service reference", Cell::code(&exception["service_ref"])),
        ("Requested or recorded", Cell::money(&exception["expected"], &exception["currency"])),
        ("At the provider", Cell::money(&exception["seen"], &exception["seen_currency"])),
        ("In the provider's list", Cell::code(&exception["subject"])),
        ("Difference in suspense", Cell::money(&exception["suspense"], &exception["currency"])),
        ("Owner", Cell::text(&exception["owner"])),
        ("Detected", Cell::time(&exception["created_at"])),
        ("Resolved", Cell::time(&exception["resolved_at"])),
        ("Reason", Cell::text(&exception["reason"])),
    ]
}

/// The data of the form that edits an exception: the button that was pressed, or a note.
#[derive(Deserialize)]
pub struct Edit {
    form_token: String,
    mine: Option<bool>,
    #[serde(default)]
    note: String,
}

pub async fn edit(
    session: Session,
    Path(named): Path<Named>,
    FormBody(sent): FormBody<Edit>,
) -> PageResult {
    session.check_form(&sent.form_token)?;
    let mut body = json!({ "note": sent.note });
    if let Some(mine) = sent.mine {
        body["mine"] = json!(mine);
    }
    session.patch(&named.path(), &body).await?;
    session.redirect(&named.path())
}

#[derive(Deserialize)]
pub struct Resolution {
    form_token: String,
    action: String,
    reason: String,
}

pub async fn resolve(
    session: Session,
    Path(named): Path<Named>,
    FormBody(sent): FormBody<Resolution>,
) -> PageResult {
    session.check_form(&sent.form_token)?;
    let body = json!({ "action": sent.action, "reason": sent.reason });
    session.post(&[&named.path()[..], &["resolve"]].concat(), &body).await?;
    session.redirect(&["exceptions"])
}
