//! The companies, the overview of one, and its records.

pub mod endpoints;
pub mod events;
pub mod keys;
pub mod members;
pub mod messages;
pub mod overview;
pub mod payments;
pub mod recollections;
pub mod requests;
pub mod users;
pub mod wallet;

use askama::Template;
use axum::{
    Router,
    routing::{get, post},
};
use serde_json::{Value, json};

use super::{
    Parent, access, exceptions, finance,
    lists::{List, ListQuery, Paging},
    reconciliation,
};
use crate::{
    Console,
    format::{Cell, column, plain},
    page::{Frame, PageResult, render},
    session::Session,
};

/// The pages of one company.
pub fn router() -> Router<Console> {
    Router::new()
        .route("/", get(overview::show))
        .route("/keys", get(keys::list).post(keys::create))
        .route("/keys/{key}/rotate", post(keys::rotate))
        .route("/keys/{key}/revoke", post(keys::revoke))
        .route("/endpoints", get(endpoints::list).post(endpoints::create))
        .route("/endpoints/{endpoint}/{action}", post(endpoints::act))
        .route("/members", get(members::list).post(members::create))
        .route("/members/{member}", get(members::show))
        .route("/members/{member}/{action}", post(members::act))
        .route("/payments", get(payments::list))
        .route("/payments/{payment}", get(payments::show))
        .route("/payments/{payment}/verify", post(payments::verify))
        .route("/routing", get(payments::routing::show))
        .route("/disputes", get(payments::disputes::list_of_company))
        .route("/disputes/{dispute}", get(payments::disputes::show))
        .route("/disputes/{dispute}/{action}", post(payments::disputes::answer))
        .route("/reconciliation", get(reconciliation::list_of_company))
        .route("/reconciliation/{account}", get(reconciliation::days_of_company))
        .route("/reconciliation/{account}/{day}", get(reconciliation::show_of_company))
        .route("/users", get(users::list))
        .route("/users/{user}", get(users::show))
        .route("/users/{user}/identities", get(users::identities))
        .route("/recollections", get(recollections::list))
        .route("/recollections/{recollection}", get(recollections::show))
        .route(
            "/collection-policy",
            get(recollections::policy::show).post(recollections::policy::save),
        )
        .route("/messages", get(messages::list))
        .route("/events", get(events::list))
        .route("/events/trigger", post(events::trigger))
        .route("/requests", get(requests::list))
        .route("/events/{event}/redeliver", post(events::redeliver))
        .route("/wallet", get(wallet::show))
        .route("/audit", get(access::audit::of_company))
        .route("/statement", get(wallet::statement::show))
        .route("/totals", get(finance::of_company))
}

/// The pages of one company that only operators have.
pub fn operators_router() -> Router<Console> {
    Router::new()
        .route("/", post(overview::edit))
        .route("/providers/{provider}/test", post(overview::test_account))
        .route("/exceptions/{exception}", get(exceptions::show).post(exceptions::resolve))
        .route("/exceptions/{exception}/edit", post(exceptions::edit))
        .route("/payments/{payment}/refund", post(payments::refund))
        .route("/routing", post(payments::routing::save))
        .route("/routing/remove", post(payments::routing::remove))
}

pub async fn list(session: Session, sent: ListQuery) -> PageResult {
    let columns = vec![
        column("Name", |company| {
            let href = session.href(&["companies", &plain(&company["id"])], &[]);
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

/// Shows a new secret once. `list` is the label and the path of the page to which it belongs.
fn show_secret(
    session: &Session,
    company: &str,
    list: (&'static str, &str),
    (secret, note): (String, &'static str),
) -> PageResult {
    let (label, page) = list;
    let href = session.href(&["companies", company, page], &[]);
    render(&SecretPage {
        frame: Frame::of_company(session, company, label, "New secret"),
        parent: Some(Parent { href, label: label.to_owned() }),
        secret,
        note,
    })
}

#[derive(Template)]
#[template(path = "secret.html")]
struct SecretPage {
    frame: Frame,
    parent: Option<Parent>,
    secret: String,
    note: &'static str,
}

/// Formats a list that limits something; `null` is no limit.
fn limit(list: &Value) -> Cell {
    match list {
        Value::Null => Cell::Text("all".to_owned()),
        list => Cell::text(list),
    }
}
