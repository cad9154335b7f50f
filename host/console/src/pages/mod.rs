//! The pages, one file each.

pub mod access;
pub mod companies;
pub mod exceptions;
pub mod finance;
pub mod home;
pub mod lists;
pub mod platform;
pub mod reconciliation;
pub mod refunds;
pub mod today;
pub mod views;

use askama::Template;
use serde::Deserialize;
use serde_json::Value;

use crate::{
    api::ApiResult,
    form::FieldsForm,
    format::{Cell, Table, plain},
    page::Frame,
    session::Session,
    site::Site,
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
    /// Returns the list of companies, or the first page for a person who is limited to some; `None`
    /// for a member, who has one company.
    fn of_company(session: &Session) -> Option<Parent> {
        let all: &[&str] = if session.me.companies.is_none() { &["companies"] } else { &[] };
        let parent = || Parent { href: session.href(all, &[]), label: "Companies".to_owned() };
        (session.site() == Site::Console).then(parent)
    }
}

/// A page with one table.
#[derive(Template)]
#[template(path = "list.html")]
struct ListPage {
    frame: Frame,
    parent: Option<Parent>,
    form: Option<FieldsForm>,
    filters: Vec<lists::Filter>,
    views: Option<views::SavedViews>,
    table: Table,
}

/// Returns the name of a company, or its id without the permission to read it.
async fn company_name(session: &Session, company: &str) -> ApiResult<String> {
    if !session.me.may("companies.read") {
        return Ok(company.to_owned());
    }
    let found = session.get(&["companies", company], &[]).await?;
    Ok(plain(&found["name"]))
}

/// Returns the frame of the page `tab` of a company, such as a list.
async fn company_frame(session: &Session, company: &str, tab: &str) -> ApiResult<Frame> {
    let title = match session.site() {
        Site::Console => company_name(session, company).await?,
        Site::Portal => tab.to_owned(),
    };
    Ok(Frame::of_company(session, company, tab, title))
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

/// Returns a cell that shows `text` of a charge, and links its payment or repayment.
fn charge_cell(session: &Session, charged: &Value, company: &str, text: &Value) -> Cell {
    let page = match &*plain(&charged["owner_kind"]) {
        "payment" => "payments",
        "recollection" => "recollections",
        _ => return Cell::text(text),
    };
    let owner = plain(&charged["owner_id"]);
    Cell::link(session.href(&["companies", company, page, &owner], &[]), text)
}

/// A fact of a record: its name and its value.
type Fact = (&'static str, Cell);
