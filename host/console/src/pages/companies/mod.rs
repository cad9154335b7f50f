//! The companies, the overview of one, and its records.

pub mod events;
pub mod messages;
pub mod payments;
pub mod recollections;
pub mod statement;
pub mod users;
pub mod wallet;

use askama::Template;
use axum::{
    Router,
    extract::Path,
    routing::{get, post},
};
use serde_json::{Value, json};

use super::{
    Fact, Parent, Tab, access, finance,
    lists::{List, ListQuery, Paging},
    tabs,
};
use crate::{
    Console,
    api::path,
    format::{Cell, Table, column, plain},
    page::{Frame, PageResult, render},
    session::Session,
};

/// The pages of one company.
pub fn router() -> Router<Console> {
    Router::new()
        .route("/", get(show))
        .route("/payments", get(payments::list))
        .route("/payments/{payment}", get(payments::show))
        .route("/payments/{payment}/verify", post(payments::verify))
        .route("/payments/{payment}/refund", post(payments::refund))
        .route("/users", get(users::list))
        .route("/users/{user}", get(users::show))
        .route("/users/{user}/identities", get(users::identities))
        .route("/recollections", get(recollections::list))
        .route("/recollections/{recollection}", get(recollections::show))
        .route("/messages", get(messages::list))
        .route("/events", get(events::list))
        .route("/events/{event}/redeliver", post(events::redeliver))
        .route("/wallet", get(wallet::show))
        .route("/audit", get(access::audit::of_company))
        .route("/statement", get(statement::show))
        .route("/totals", get(finance::of_company))
}

pub async fn list(session: Session, sent: ListQuery) -> PageResult {
    let columns = vec![
        column("Name", |company| {
            let href = path(&["console", "companies", &plain(&company["id"])], &[]);
            Cell::link(href, &company["name"])
        }),
        column("Mode", |company| Cell::text(&company["server"])),
        column("State", |company| Cell::state(&state(company))),
        column("Provider", |company| Cell::text(&company["payment_service"])),
        column("Created", |company| Cell::time(&company["created_at"])),
    ];
    let list = List {
        title: "Companies",
        source: &["companies"],
        paging: Paging::Numbered,
        filters: &[],
        columns,
        empty: "There are no companies yet.",
    };
    list.show(&session, &sent).await
}

fn state(company: &Value) -> Value {
    match (company["active"].as_bool(), company["subscription"]["active"].as_bool()) {
        (Some(true), Some(true)) => json!("active"),
        (Some(true), _) => json!("not subscribed"),
        _ => json!("suspended"),
    }
}

#[derive(Template)]
#[template(path = "company.html")]
struct CompanyPage {
    frame: Frame,
    parent: Option<Parent>,
    tabs: Vec<Tab>,
    facts: Vec<Fact>,
    providers: Table,
    keys: Table,
}

pub async fn show(session: Session, Path(id): Path<String>) -> PageResult {
    let company = session.get(&["companies", &id], &[]).await?;
    let facts = vec![
        ("Id", Cell::code(&company["id"])),
        ("State", Cell::state(&state(&company))),
        ("Mode", Cell::text(&company["server"])),
        ("Subscription ends", Cell::time(&company["subscription"]["expires_at"])),
        ("Features", limit(&company["subscription"]["features"])),
        ("Event URL", Cell::text(&company["event_url"])),
        ("Provider", Cell::text(&company["payment_service"])),
        ("Countries", Cell::text(&company["countries"])),
        ("Created", Cell::time(&company["created_at"])),
    ];
    let found = session.get(&["companies", &id, "providers"], &[]).await?;
    let columns = [
        column("Provider", |account| Cell::text(&account["provider"])),
        column("Active", |account| Cell::text(&account["active"])),
        column("Credentials", |account| Cell::text(&account["has_credentials"])),
    ];
    let empty = "The company uses the accounts of the service.";
    let providers = Table::new("Provider accounts", &found, &columns, empty);
    let found = session.get(&["companies", &id, "keys"], &[]).await?;
    let columns = [
        column("Key", |key| Cell::code(&key["prefix"])),
        column("Label", |key| Cell::text(&key["label"])),
        column("Scopes", |key| limit(&key["scopes"])),
        column("Addresses", |key| limit(&key["addresses"])),
        column("Last used", |key| Cell::time(&key["last_used_at"])),
        column("Expires", |key| Cell::time(&key["expires_at"])),
        column("Revoked", |key| Cell::time(&key["revoked_at"])),
    ];
    let keys = Table::new("API keys", &found, &columns, "The company has no API keys.");
    render(&CompanyPage {
        frame: Frame::new(&session, "Companies", plain(&company["name"])),
        parent: Some(Parent::of_company(&session)),
        tabs: tabs(&session, &id, "Overview"),
        facts,
        providers,
        keys,
    })
}

/// Formats a list that limits something; `null` is no limit.
fn limit(list: &Value) -> Cell {
    match list {
        Value::Null => Cell::Text("all".to_owned()),
        list => Cell::text(list),
    }
}
