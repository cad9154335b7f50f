//! The overview of a company: its settings, provider accounts and prices.

use askama::Template;
use axum::extract::{Form as FormBody, Path};
use serde_json::{Map, Value, json};

use super::{limit, state};
use crate::{
    api::ApiResult,
    form::{Field, FieldsForm, Sent},
    format::{Cell, Table, column, plain, right},
    page::{Frame, PageResult, render},
    pages::{Fact, Form, ListPage, Parent},
    session::Session,
};

#[derive(Template)]
#[template(path = "company.html")]
struct CompanyPage {
    frame: Frame,
    parent: Option<Parent>,
    facts: Vec<Fact>,
    /// For those who may change the company.
    form: Option<FieldsForm>,
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
        ("Low balance threshold", Cell::money(&company["low_balance"], &json!("NGN"))),
        ("SMS gateway", Cell::text(&company["sms_gateway"])),
        ("SMS sender", Cell::text(&company["sms_sender"])),
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
        form: edit_form(&session, &id, &company),
        providers,
        prices: prices(&session, &id).await?,
    })
}

/// The fields of the form, by their names in the interface, with their labels and hints.
const FIELDS: [(&str, &str, &str); 8] = [
    ("name", "Name", ""),
    ("event_url", "Event URL", ""),
    ("logo", "URL of the logo", ""),
    ("payment_service", "Provider", "Used if a request names none. Empty: the service default."),
    ("countries", "Countries", "ISO codes, for example NG, GH. Empty: the service default."),
    (
        "low_balance",
        "Low balance threshold",
        "Below it, operators receive an event. Empty: the service default.",
    ),
    ("sms_gateway", "SMS gateway", "Tried first."),
    ("sms_sender", "SMS sender", "A name or number that the gateway account may use."),
];

/// Returns the form that changes a company.
fn edit_form(session: &Session, id: &str, company: &Value) -> Option<FieldsForm> {
    let mut fields: Vec<Field> = FIELDS
        .map(|(name, label, hint)| Field::text(name, label, hint).with_value(shown(company, name)))
        .into();
    fields.push(
        Field::choice("active", "State", &[("true", "active"), ("false", "suspended")])
            .with_value(shown(company, "active")),
    );
    let texts = ("Edit the company", "Save the changes");
    let action = session.href(&["companies", id], &[]);
    FieldsForm::new(session, "companies.write", texts, action, fields)
}

/// Returns a field as the form shows it.
fn shown(company: &Value, name: &str) -> String {
    match &company[name] {
        Value::Bool(flag) => flag.to_string(),
        Value::Array(texts) => texts.iter().map(plain).collect::<Vec<_>>().join(", "),
        value => plain(value),
    }
}

/// Changes the fields of a company that differ from what the form showed.
pub async fn edit(
    session: Session,
    Path(id): Path<String>,
    FormBody(sent): FormBody<Sent>,
) -> PageResult {
    session.check_form(sent.text("form_token"))?;
    let names = FIELDS.iter().map(|(name, ..)| *name).chain(["active"]);
    let changed = names.filter(|name| sent.is_changed(name));
    let changes: Map<String, Value> =
        changed.map(|name| (name.to_owned(), to_json(name, sent.text(name)))).collect();
    if !changes.is_empty() {
        session.patch(&["companies", &id], &json!(changes)).await?;
    }
    session.redirect(&["companies", &id])
}

/// Returns a field as the interface expects it, which rejects a text that is not a number.
fn to_json(name: &str, text: &str) -> Value {
    match name {
        "name" => json!(text),
        _ if text.is_empty() => Value::Null,
        "active" => json!(text == "true"),
        "countries" => {
            json!(text.split([',', ' ']).filter(|code| !code.is_empty()).collect::<Vec<_>>())
        }
        "low_balance" => serde_json::from_str(text).unwrap_or_else(|_| json!(text)),
        _ => json!(text),
    }
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
    Ok(Table::new("Prices", &rows.collect(), &columns, "No prices are set."))
}

/// Tests a provider account with a call that has no effect, and shows the outcome.
pub async fn test_account(
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
