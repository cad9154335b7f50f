//! Events, for operators: what was told, how it went, and telling it again.

use std::collections::HashMap;

use axum::extract::State;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};
use url::Url;

use super::{
    DELIVER_JOB,
    store::{self, Attempt, Delivery, EventRow},
};
use crate::{
    app::App,
    audit,
    clock::Timestamp,
    companies,
    error::{Error, Result},
    http::{
        answer::Answer,
        body::Fields,
        path::Path,
        query::{Pages, Query},
    },
    jobs,
    listing::Listed,
};

/// A URL to send events to, as it was read from a field. Only development mode takes plain http: it is delivered to nowhere else.
pub fn destination(
    app: &App,
    body: &Fields,
    field: &str,
    url: Option<String>,
) -> Result<Option<String>> {
    let is_https = |url: &String| Url::parse(url).is_ok_and(|url| url.scheme() == "https");
    if !app.settings.development && !url.iter().all(is_https) {
        return Err(body.must_be(field, "an https URL"));
    }
    Ok(url)
}

/// An event, and how it got to whom.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Event")]
pub struct View {
    id: String,
    /// Such as `payment.success`.
    event: String,
    /// The id of what it is about.
    subject: String,
    /// What is sent.
    body: Value,
    deliveries: Vec<Delivery>,
    created_at: Timestamp,
}

pub async fn list(
    State(app): State<App>,
    Path(company): Path<String>,
    query: Query<Pages>,
) -> Result<Answer<Listed<View>>> {
    let page = query.read()?;
    let (total, events) = app
        .store
        .read(async |tx| -> Result<_> {
            companies::get(tx, &company).await?;
            let (total, events) = store::list(tx, &company, page).await?;
            let mut deliveries: HashMap<String, Vec<Delivery>> = HashMap::new();
            for delivery in store::deliveries_of_page(tx, &company, page).await? {
                deliveries.entry(delivery.event_id.clone()).or_default().push(delivery);
            }
            let views = events.into_iter().map(|event| {
                let deliveries = deliveries.remove(&event.id).unwrap_or_default();
                view(event, deliveries)
            });
            Ok((total, views.collect::<Result<Vec<_>>>()?))
        })
        .await?;
    Answer::data(page.of(total, events), "Events fetched successfully")
}

fn view(event: EventRow, deliveries: Vec<Delivery>) -> Result<View> {
    Ok(View {
        body: serde_json::from_str(&event.body).map_err(Error::internal)?,
        id: event.id,
        event: event.kind,
        subject: event.subject_id,
        deliveries,
        created_at: event.created_at,
    })
}

pub async fn attempts(
    State(app): State<App>,
    Path((company, event)): Path<(String, String)>,
) -> Result<Answer<Vec<Attempt>>> {
    let attempts = app
        .store
        .read(async |tx| -> Result<_> {
            store::event(tx, &company, &event).await?.ok_or_else(missing)?;
            Ok(store::attempts(tx, &company, &event).await?)
        })
        .await?;
    Answer::data(attempts, "Attempts fetched successfully")
}

/// How many deliveries were queued.
#[derive(Serialize, JsonSchema)]
pub struct Redelivered {
    deliveries: usize,
}

/// Queues every delivery of an event anew, also to a destination that was switched off, and one to the company's present URL.
pub async fn redeliver(
    State(app): State<App>,
    Path((company, event)): Path<(String, String)>,
) -> Result<Answer<Redelivered>> {
    let db = app.store.clone();
    db.write(async move |tx| {
        store::event(tx, &company, &event).await?.ok_or_else(missing)?;
        let now = app.clock.now();
        if let Some(url) = companies::get(tx, &company).await?.event_url {
            let delivery = Delivery::new(&company, app.random.id(now), &event, url, false);
            store::insert_delivery(tx, &delivery, now).await?;
        }
        let deliveries = store::deliveries(tx, &company, &event).await?;
        for delivery in &deliveries {
            store::enable(tx, &company, &delivery.url).await?;
            store::queue_delivery(tx, &company, &delivery.id).await?;
            jobs::wake(tx, &company, DELIVER_JOB, &delivery.id, now).await?;
        }
        audit::record(tx, &app, &company, "event.redeliver", json!({ "event": event })).await?;
        let redelivered = Redelivered { deliveries: deliveries.len() };
        Answer::data(redelivered, "Event queued for delivery successfully")
    })
    .await
}

fn missing() -> Error {
    Error::not_found("event not found")
}
