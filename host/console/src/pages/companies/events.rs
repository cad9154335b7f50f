//! The events of a company and their deliveries.

use axum::extract::{Form as FormBody, Path};
use serde_json::{Value, json};

use super::endpoints::TYPES;
use crate::{
    api::ApiResult,
    form::{Field, FieldsForm, Sent},
    format::{Cell, column, plain, right},
    page::PageResult,
    pages::{
        Form,
        lists::{List, ListQuery, Paging},
    },
    session::Session,
};

pub async fn list(session: Session, Path(company): Path<String>, sent: ListQuery) -> PageResult {
    let last = |event: &Value| event["deliveries"].as_array().and_then(|all| all.last()).cloned();
    let columns = vec![
        column("Created", |event| Cell::time(&event["created_at"])),
        column("Event", |event| Cell::text(&event["event"])),
        column("Record", |event| Cell::code(&event["subject"])),
        column("Delivery", |event| Cell::state(&last(event).unwrap_or_default()["state"])),
        right("Attempts", |event| Cell::text(&last(event).unwrap_or_default()["attempts"])),
        column("", |event| {
            let segments = ["companies", &company, "events", &plain(&event["id"])];
            let action = session.href(&[&segments[..], &["redeliver"]].concat(), &[]);
            session.button("events.redeliver", "Redeliver", "", action)
        }),
    ];
    let list = List {
        title: "Events",
        source: &["companies", &company, "events"],
        paging: Paging::Numbered,
        filters: &[],
        columns,
        empty: "There are no events yet.",
    };
    let form = trigger_form(&session, &company).await?;
    list.show_with(&session, &company, &sent, form).await
}

/// Returns the form that triggers an event with example data, for a test company.
async fn trigger_form(session: &Session, company: &str) -> ApiResult<Option<FieldsForm>> {
    if !session.me.may("events.write") || !session.me.may("companies.read") {
        return Ok(None);
    }
    let found = session.get(&["companies", company], &[]).await?;
    if found["server"] != "test" {
        return Ok(None);
    }
    let types: Vec<_> = TYPES.iter().map(|kind| (*kind, *kind)).collect();
    let fields = vec![Field::choice("type", "Type", &types)];
    let action = session.href(&["companies", company, "events", "trigger"], &[]);
    let texts = ("Trigger a test event", "Trigger the event");
    Ok(FieldsForm::new(session, "events.write", texts, action, fields))
}

/// Triggers an event with example data.
pub async fn trigger(
    session: Session,
    Path(company): Path<String>,
    FormBody(sent): FormBody<Sent>,
) -> PageResult {
    session.check_form(sent.text("form_token"))?;
    let body = json!({ "type": sent.text("type") });
    session.post(&["companies", &company, "events", "trigger"], &body).await?;
    session.redirect(&["companies", &company, "events"])
}

pub async fn redeliver(
    session: Session,
    Path((company, event)): Path<(String, String)>,
    FormBody(form): FormBody<Form>,
) -> PageResult {
    session.check_form(&form.form_token)?;
    session.post(&["companies", &company, "events", &event, "redeliver"], &json!({})).await?;
    session.redirect(&["companies", &company, "events"])
}
