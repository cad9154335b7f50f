//! The routing policy of a company, and why a provider was chosen.

use askama::Template;
use axum::{
    extract::{Form as FormBody, Path},
    http::StatusCode,
};
use serde_json::{Value, json};

use crate::{
    api::ApiResult,
    form::{Field, FieldsForm, Sent},
    format::{Cell, Table, column, plain, right},
    page::{Frame, PageResult, render},
    pages::{Fact, Form, Parent},
    session::Session,
};

#[derive(Template)]
#[template(path = "routing.html")]
struct RoutingPage {
    frame: Frame,
    parent: Option<Parent>,
    facts: Vec<Fact>,
    form: Option<FieldsForm>,
    /// The button that removes the policy.
    remove: Option<Cell>,
    rules: Table,
    providers: Table,
}

const STRATEGIES: [(&str, &str); 3] =
    [("score", "by score"), ("weight", "by weight"), ("order", "in this order")];

pub async fn show(session: Session, Path(company): Path<String>) -> PageResult {
    let found = session.get(&["companies", &company], &[]).await?;
    let policy = &found["routing"];
    let segments = ["companies", &company, "routing", "preview"];
    let (preview, now) = match session.get(&segments, &[]).await {
        Ok(preview) => {
            let provider = Cell::text(&preview["provider"]);
            (preview, provider)
        }
        // No listed provider can take a payment.
        Err(refused) if refused.status == StatusCode::BAD_REQUEST => {
            (Value::Null, Cell::Text(refused.message))
        }
        Err(failure) => return Err(failure.into()),
    };
    let strategy = STRATEGIES.iter().find(|(name, _)| policy["route"]["choose_by"] == **name);
    let percent = |name: &str| match &policy[name] {
        Value::Null => Cell::text(&Value::Null),
        number => Cell::Text(format!("{} %", plain(number))),
    };
    let facts = vec![
        ("Providers", Cell::text(&json!(listed(&policy["route"])))),
        ("Chosen", Cell::text(&json!(strategy.map(|(_, label)| label)))),
        ("Value of a success", percent("success_value_percent")),
        ("Explored checkouts", percent("explore_percent")),
        ("Choice for 1,000 NGN now", now),
    ];
    let remove = session.href(&["companies", &company, "routing", "remove"], &[]);
    let question = "Checkouts use the default provider of the company again.";
    render(&RoutingPage {
        frame: Frame::of_company(&session, &company, "Routing", "Routing"),
        parent: Parent::of_company(&session),
        facts,
        form: form(&session, &company, policy),
        remove: (!policy.is_null())
            .then(|| session.button("companies.write", "Remove the policy", question, remove)),
        rules: rules(&policy["rules"]),
        providers: considered(&preview["providers"], policy.is_null()),
    })
}

/// Returns the providers of a route, with their weights if they matter.
fn listed(route: &Value) -> String {
    let show = |one: &Value| match route["choose_by"].as_str() {
        Some("weight") => format!("{}: {}", plain(&one["provider"]), plain(&one["weight"])),
        _ => plain(&one["provider"]),
    };
    let providers = route["providers"].as_array().into_iter().flatten();
    providers.map(show).collect::<Vec<_>>().join(", ")
}

fn form(session: &Session, company: &str, policy: &Value) -> Option<FieldsForm> {
    let number = |name: &str, default: &str| match &policy[name] {
        Value::Null => default.to_owned(),
        number => plain(number),
    };
    let choose_by = match &policy["route"]["choose_by"] {
        Value::Null => "score".to_owned(),
        name => plain(name),
    };
    let hint = "For example provider_a, provider_b; with weights provider_a: 3, provider_b: 1.";
    let fields = vec![
        Field::text("providers", "Providers", hint).with_value(listed(&policy["route"])),
        Field::choice("choose_by", "Choose", &STRATEGIES).with_value(choose_by),
        Field::text("success_value_percent", "Value of a success", "Percentage of the amount.")
            .with_value(number("success_value_percent", "20")),
        Field::text("explore_percent", "Explored checkouts", "Percentage, if chosen by score.")
            .with_value(number("explore_percent", "2")),
    ];
    let action = session.href(&["companies", company, "routing"], &[]);
    let texts = ("Edit the policy", "Save the policy");
    FieldsForm::new(session, "companies.write", texts, action, fields)
}

fn rules(rules: &Value) -> Table {
    let columns = [
        column("Rule", |rule| Cell::text(&rule["name"])),
        column("If", |rule| Cell::Text(conditions(&rule["when"]))),
        column("Providers", |rule| Cell::Text(listed(&rule["route"]))),
    ];
    Table::new("Rules", rules, &columns, "No rules: all checkouts use the same providers.")
}

fn conditions(when: &Value) -> String {
    let is_set = |value: &Value| match value {
        Value::Array(texts) => !texts.is_empty(),
        value => !value.is_null(),
    };
    let show = |(name, value): (&String, &Value)| match value {
        Value::Array(texts) => {
            let texts: Vec<String> = texts.iter().map(plain).collect();
            format!("{}: {}", name.replace('_', " "), texts.join(", "))
        }
        value => format!("{}: {}", name.replace('_', " "), plain(value)),
    };
    let conditions = when.as_object().into_iter().flatten().filter(|(_, value)| is_set(value));
    conditions.map(show).collect::<Vec<_>>().join("; ")
}

/// Returns the providers that the router considered, with their estimates.
fn considered(providers: &Value, has_no_policy: bool) -> Table {
    let percent = |value: &Value, scale: f64| match value.as_f64() {
        Some(number) => Cell::Text(format!("{:.1} %", number * scale)),
        None => Cell::Text(String::new()),
    };
    let columns = [
        column("Provider", |one| Cell::text(&one["provider"])),
        right("Score", |one| match one["score"].as_f64() {
            Some(score) => Cell::Text(format!("{score:.2}")),
            None => Cell::Text(String::new()),
        }),
        right("Available", move |one| percent(&one["estimate"]["availability"], 100.0)),
        right("Success rate", move |one| percent(&one["estimate"]["success_rate"], 100.0)),
        right("Fees", move |one| percent(&one["estimate"]["fees_percent"], 1.0)),
        column("State", |one| match (one["excluded"].as_str(), &one["estimate"]["is_down"]) {
            (Some(reason), _) => Cell::Text(format!("excluded: {}", reason.replace('_', " "))),
            (None, Value::Bool(true)) => Cell::state(&json!("down")),
            _ => Cell::Text(String::new()),
        }),
    ];
    let empty = match has_no_policy {
        true => "There is no policy.",
        false => "No listed provider can be used.",
    };
    Table::new("Provider estimates", providers, &columns, empty)
}

/// Returns why each provider of a record was chosen: a payment, or a recollection by checkout.
pub async fn of_record(
    session: &Session,
    company: &str,
    (records, id): (&str, &str),
) -> ApiResult<Table> {
    let choices = session.get(&["companies", company, records, id, "routing"], &[]).await?;
    let columns = [
        column("Provider", |one| Cell::text(&one["provider"])),
        column("Reason", |one| Cell::Text(reason(one).to_owned())),
        column("Rule", |one| Cell::text(&one["rule"])),
        column("Other providers", |one| Cell::Text(others(one))),
        column("Chosen", |one| Cell::time(&one["created_at"])),
    ];
    let empty = "The request named the provider, or it is the default.";
    Ok(Table::new("Routing", &choices, &columns, empty))
}

fn reason(choice: &Value) -> &'static str {
    match choice["reason"].as_str() {
        Some("only") => "no other provider could be used",
        Some("score") => "it had the highest score",
        Some("explored") => "its success rate and fees were measured",
        Some("weight") => "it was drawn by weight",
        Some("order") => "it was the first in the list that was not down",
        Some("failover") => "the provider before it did not open a session",
        _ => "",
    }
}

/// Returns the other providers of a choice, each with its score or why it was excluded.
fn others(choice: &Value) -> String {
    let others = choice["providers"].as_array().into_iter().flatten();
    let others = others.filter(|one| one["provider"] != choice["provider"]);
    let show = |one: &Value| {
        let provider = plain(&one["provider"]);
        match (one["excluded"].as_str(), one["score"].as_f64()) {
            (Some(reason), _) => format!("{provider} ({})", reason.replace('_', " ")),
            (None, Some(score)) => format!("{provider} (score {score:.2})"),
            (None, None) => provider,
        }
    };
    others.map(show).collect::<Vec<_>>().join(", ")
}

/// Sets the policy. Its rules are kept.
pub async fn save(
    session: Session,
    Path(company): Path<String>,
    FormBody(sent): FormBody<Sent>,
) -> PageResult {
    session.check_form(sent.text("form_token"))?;
    let found = session.get(&["companies", &company], &[]).await?;
    let number = |text: &str| serde_json::from_str(text).unwrap_or_else(|_| json!(text));
    let provider = |listed: &str| match listed.split_once(':') {
        Some((provider, weight)) => {
            json!({ "provider": provider.trim(), "weight": number(weight.trim()) })
        }
        None => json!({ "provider": listed.trim() }),
    };
    let providers = sent.text("providers").split(',').filter(|listed| !listed.trim().is_empty());
    let policy = json!({
        "route": {
            "providers": providers.map(provider).collect::<Vec<_>>(),
            "choose_by": sent.text("choose_by"),
        },
        "rules": found["routing"]["rules"],
        "success_value_percent": number(sent.text("success_value_percent")),
        "explore_percent": number(sent.text("explore_percent")),
    });
    session.put(&["companies", &company, "routing"], &policy).await?;
    session.redirect(&["companies", &company, "routing"])
}

pub async fn remove(
    session: Session,
    Path(company): Path<String>,
    FormBody(form): FormBody<Form>,
) -> PageResult {
    session.check_form(&form.form_token)?;
    session.delete(&["companies", &company, "routing"]).await?;
    session.redirect(&["companies", &company, "routing"])
}
