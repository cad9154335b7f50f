//! Repayments of a company's loans.

pub mod policy;

use askama::Template;
use axum::extract::Path;
use serde_json::Value;

use crate::{
    format::{Cell, Column, Table, column, money, plain},
    page::{Frame, PageResult, render},
    pages::{
        Fact, Parent,
        companies::payments::routing,
        company_name,
        lists::{Declared, List, ListQuery, Paging},
    },
    session::Session,
};

const FILTERS: Declared = &[
    ("user_id", "User", &[]),
    ("loan", "Loan", &[]),
    ("date-created_at", "Created (DD-MM-YYYY, or from/to)", &[]),
];

/// The columns of recollections of a company.
pub fn columns<'c>(session: &'c Session, company: &'c str) -> Vec<Column<'c>> {
    let href = move |found: &Value| {
        session.href(&["companies", company, "recollections", &plain(&found["id"])], &[])
    };
    vec![
        column("Reference", move |found| Cell::link(href(found), &found["reference"])),
        column("User id", |found| Cell::text(&found["user_id"])),
        column("Loan", |found| Cell::code(&found["loan"])),
        money("Amount", "amount", "currency"),
        column("State", |found| Cell::state(&found["status"])),
        column("Channel", |found| Cell::text(&found["payment_channel"])),
        column("Created", |found| Cell::time(&found["created_at"])),
        column("Repaid", |found| Cell::time(&found["repaid_at"])),
    ]
}

pub async fn list(session: Session, Path(company): Path<String>, sent: ListQuery) -> PageResult {
    let list = List {
        title: "Repayments",
        source: &["companies", &company, "recollections"],
        paging: Paging::NumberedOrKeyset,
        filters: FILTERS,
        columns: columns(&session, &company),
        empty: "There are no such repayments.",
    };
    list.show_of_company(&session, &company, &sent).await
}

#[derive(Template)]
#[template(path = "recollection.html")]
struct RecollectionPage {
    frame: Frame,
    parent: Option<Parent>,
    status: Cell,
    amount: Cell,
    facts: Vec<Fact>,
    /// Why its provider was chosen; `None` for a recollection without checkout.
    routing: Option<Table>,
}

pub async fn show(session: Session, Path((company, id)): Path<(String, String)>) -> PageResult {
    let found = session.get(&["companies", &company, "recollections", &id], &[]).await?;
    let name = company_name(&session, &company).await?;
    let href = session.href(&["companies", &company, "recollections"], &[]);
    let user = plain(&found["user"]["id"]);
    let user_page = session.href(&["companies", &company, "users", &user], &[]);
    let customer = match session.me.may("users.read") {
        true => Cell::link(user_page, &found["user_id"]),
        false => Cell::text(&found["user_id"]),
    };
    let routing = match found["payment_channel"] == "checkout" {
        true => Some(routing::of_record(&session, &company, ("recollections", &id)).await?),
        false => None,
    };
    let facts = vec![
        ("Id", Cell::code(&found["id"])),
        ("Customer", customer),
        ("Loan", Cell::code(&found["loan"])),
        ("Provider", Cell::text(&found["payment_service"])),
        ("Channel", Cell::text(&found["payment_channel"])),
        ("Charged through a provider", Cell::text(&found["with_provider"])),
        ("Message", Cell::text(&found["message"])),
        ("Decline reason", Cell::text(&found["decline"])),
        ("Created", Cell::time(&found["created_at"])),
        ("Repaid", Cell::time(&found["repaid_at"])),
        ("Updated", Cell::time(&found["updated_at"])),
    ];
    render(&RecollectionPage {
        frame: Frame::of_company(&session, &company, "Repayments", plain(&found["reference"])),
        parent: Some(Parent { href, label: format!("Repayments of {name}") }),
        status: Cell::state(&found["status"]),
        amount: Cell::money(&found["amount"], &found["currency"]),
        facts,
        routing,
    })
}
