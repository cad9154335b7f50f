//! The URLs that receive the events of a company.

use axum::extract::{Form as FormBody, Path};
use serde_json::{Value, json};

use super::{limit, show_secret};
use crate::{
    form::{Field, FieldsForm, Sent},
    format::{Cell, column, plain},
    page::PageResult,
    pages::{
        Form,
        lists::{List, ListQuery, Paging},
    },
    session::Session,
};

/// The types of events, as the interface names them.
pub const TYPES: &[&str] = &[
    "card.validation.success", "card.validation.failed", "direct_debit.created",
    "direct_debit.approved", "direct_debit.ready", "direct_debit.cancelled", "payment.success",
    "payment.failed", "payment.refunded", "payment.partly_refunded", "payment.disputed",
    "payment.dispute_closed", "recollection.success", "recollection.failed",
    "recollection.reversed", "recollection.disputed", "recollection.dispute_closed",
    "installment.upcoming", "installment.due", "installment.overdue",
];

pub async fn list(session: Session, Path(company): Path<String>, sent: ListQuery) -> PageResult {
    let button = |endpoint: &Value, permission, (label, question), action| {
        let segments = ["companies", &company, "endpoints", &plain(&endpoint["id"]), action];
        session.button(permission, label, question, session.href(&segments, &[]))
    };
    let columns = vec![
        column("URL", |endpoint| Cell::text(&endpoint["url"])),
        column("Types", |endpoint| match endpoint["types"].as_array() {
            Some(types) if types.is_empty() => limit(&Value::Null),
            _ => Cell::text(&endpoint["types"]),
        }),
        column("Description", |endpoint| Cell::text(&endpoint["description"])),
        column("State", |endpoint| match endpoint["active"].as_bool() {
            Some(true) => Cell::state(&json!("active")),
            _ => Cell::state(&json!("inactive")),
        }),
        column("", |endpoint| match endpoint["active"].as_bool() {
            Some(true) => button(endpoint, "events.write", ("Deactivate", ""), "deactivate"),
            _ => button(endpoint, "events.write", ("Activate", ""), "activate"),
        }),
        column("", |endpoint| {
            let question = "The previous secret also signs events for one more day.";
            button(endpoint, "keys.write", ("Rotate the secret", question), "rotate")
        }),
        column("", |endpoint| {
            let question = "Its pending deliveries are cancelled.";
            button(endpoint, "events.write", ("Delete", question), "delete")
        }),
    ];
    let list = List {
        title: "Event endpoints",
        source: &["companies", &company, "event-endpoints"],
        paging: Paging::Whole,
        filters: &[],
        columns,
        empty: "There are no endpoints besides the event URL of the company.",
    };
    let fields = vec![
        Field::required("url", "URL", "url"),
        Field::text("description", "Description", ""),
        Field::choices("types", "Event types", TYPES),
    ];
    let action = session.href(&["companies", &company, "endpoints"], &[]);
    let texts = ("Add an endpoint", "Add the endpoint");
    let form = FieldsForm::new(&session, "events.write", texts, action, fields);
    list.show_with(&session, &company, &sent, form).await
}

pub async fn create(
    session: Session,
    Path(company): Path<String>,
    FormBody(sent): FormBody<Sent>,
) -> PageResult {
    session.check_form(sent.text("form_token"))?;
    let body = json!({
        "url": sent.text("url"), "description": sent.optional("description"),
        "types": sent.all("types"),
    });
    let created = session.post(&["companies", &company, "event-endpoints"], &body).await?;
    show_signing_secret(&session, &company, &created)
}

fn show_signing_secret(session: &Session, company: &str, created: &Value) -> PageResult {
    let note = "Receivers verify the signature of events with it.";
    let list = ("Event endpoints", "endpoints");
    show_secret(session, company, list, (plain(&created["secret"]), note))
}

/// Activates, deactivates or deletes an endpoint, or rotates its secret.
pub async fn act(
    session: Session,
    Path((company, endpoint, action)): Path<(String, String, String)>,
    FormBody(form): FormBody<Form>,
) -> PageResult {
    session.check_form(&form.form_token)?;
    let path = ["companies", &company, "event-endpoints", &endpoint];
    match &*action {
        "activate" => session.patch(&path, &json!({ "active": true })).await?,
        "deactivate" => session.patch(&path, &json!({ "active": false })).await?,
        "delete" => session.delete(&path).await?,
        "rotate" => {
            let path = [&path[..], &["secret", "rotate"]].concat();
            let rotated = session.post(&path, &json!({})).await?;
            return show_signing_secret(&session, &company, &rotated);
        }
        _ => return Err(crate::page::not_found().await),
    };
    session.redirect(&["companies", &company, "endpoints"])
}
