//! The companies, the overview of one, and its records.

pub mod endpoints;
pub mod events;
pub mod keys;
pub mod members;
pub mod messages;
pub mod payments;
pub mod recollections;
pub mod requests;
pub mod statement;
pub mod users;
pub mod wallet;

use askama::Template;
use axum::{
    Router,
    extract::{Form as FormBody, Path},
    routing::{get, post},
};
use serde_json::{Value, json};

use super::{
    Fact, Form, ListPage, Parent, access, exceptions, finance,
    lists::{List, ListQuery, Paging},
};
use crate::{
    Console,
    api::ApiResult,
    format::{Cell, Table, column, plain, right},
    page::{Frame, PageResult, render},
    session::Session,
};

/// The pages of one company.
pub fn router() -> Router<Console> {
    Router::new()
        .route("/", get(show))
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
        .route("/users", get(users::list))
        .route("/users/{user}", get(users::show))
        .route("/users/{user}/identities", get(users::identities))
        .route("/recollections", get(recollections::list))
        .route("/recollections/{recollection}", get(recollections::show))
        .route("/messages", get(messages::list))
        .route("/events", get(events::list))
        .route("/events/trigger", post(events::trigger))
        .route("/requests", get(requests::list))
        .route("/events/{event}/redeliver", post(events::redeliver))
        .route("/wallet", get(wallet::show))
        .route("/audit", get(access::audit::of_company))
        .route("/statement", get(statement::show))
        .route("/totals", get(finance::of_company))
}

/// The pages of one company that only operators have.
pub fn operators_router() -> Router<Console> {
    Router::new()
        .route("/providers/{provider}/test", post(test_account))
        .route("/exceptions/{exception}", get(exceptions::show).post(exceptions::resolve))
        .route("/payments/{payment}/refund", post(payments::refund))
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

#[derive(Template)]
#[template(path = "company.html")]
struct CompanyPage {
    frame: Frame,
    parent: Option<Parent>,
    facts: Vec<Fact>,
    providers: Table,
    prices: Table,
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
        column("", |account| {
            let provider = plain(&account["provider"]);
            let segments = ["companies", &id, "providers", &provider, "test"];
            let action = session.href(&segments, &[]);
            session.button("providers.write", "Test this account", "", action)
        }),
    ];
    let empty = "The company uses the accounts of the service.";
    let providers = Table::new("Provider accounts", &found, &columns, empty);
    render(&CompanyPage {
        frame: Frame::of_company(&session, &id, "Overview", plain(&company["name"])),
        parent: Parent::of_company(&session),
        facts,
        providers,
        prices: prices(&session, &id).await?,
    })
}

/// Returns the effective prices of a company.
async fn prices(session: &Session, company: &str) -> ApiResult<Table> {
    let found = session.get(&["companies", company, "prices"], &[]).await?;
    let items = found["prices"].as_object().into_iter().flatten();
    let rows = items.map(
        |(item, price)| json!({ "item": item, "price": price["price"], "plan": price["plan"] }),
    );
    let columns = [
        column("Item", |row| Cell::text(&row["item"])),
        right("Price", |row| Cell::money(&row["price"], &found["currency"])),
        column("From", |row| match row["plan"].as_str() {
            Some("company") => Cell::Text("the company's own plan".to_owned()),
            Some("default") => Cell::Text("the default plan".to_owned()),
            Some(_) => Cell::Text("the plugin".to_owned()),
            None => Cell::Text("free".to_owned()),
        }),
    ];
    Ok(Table::new("Prices", &rows.collect(), &columns, "Nothing has a price."))
}

/// Tests a provider account with a call that has no effect, and shows the outcome.
async fn test_account(
    session: Session,
    Path((company, provider)): Path<(String, String)>,
    FormBody(form): FormBody<Form>,
) -> PageResult {
    session.check_form(&form.form_token)?;
    let path_of = ["companies", &company, "providers", &provider, "test"];
    let tested = session.post(&path_of, &json!({})).await?;
    let href = session.href(&["companies", &company], &[]);
    let rows = tested.as_object().into_iter().flatten();
    let rows = rows.map(|(name, value)| json!({ "name": name, "value": value }));
    let columns = [
        column("", |row| Cell::Text(plain(&row["name"]).replace('_', " "))),
        column("Result", |row| Cell::state(&json!(plain(&row["value"])))),
    ];
    render(&ListPage {
        frame: Frame::of_company(
            &session,
            &company,
            "Overview",
            format!("Test of the account at {provider}"),
        ),
        parent: Some(Parent { href, label: "The company".to_owned() }),
        form: None,
        filters: Vec::new(),
        views: None,
        table: Table::new("Test", &rows.collect(), &columns, ""),
    })
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
