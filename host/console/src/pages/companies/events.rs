//! The events of a company and their deliveries.

use axum::{
    extract::{Form as FormBody, Path},
    response::{IntoResponse, Redirect},
};
use serde_json::{Value, json};

use crate::{
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
    list.show_of_company(&session, &company, &sent).await
}

pub async fn redeliver(
    session: Session,
    Path((company, event)): Path<(String, String)>,
    FormBody(form): FormBody<Form>,
) -> PageResult {
    session.check_form(&form.form_token)?;
    session.post(&["companies", &company, "events", &event, "redeliver"], &json!({})).await?;
    Ok(Redirect::to(&session.href(&["companies", &company, "events"], &[])).into_response())
}
