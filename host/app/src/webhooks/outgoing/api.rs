//! The operator API for events: list, inspect and redeliver.

use std::collections::HashMap;

use serde_json::Value;

use super::{
    DELIVER_JOB,
    store::{self, Attempt, Delivery, EventRow},
};
use crate::{
    operations::audit, state::prelude::*, tenants::companies, webhooks::outgoing::EventId,
};
use tollhouse_platform::{background::jobs, values::id::CompanyId};

/// An event and its deliveries.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Event")]
pub struct View {
    id: EventId,
    /// The kind of event, for example `payment.success`.
    event: String,
    /// The id of the record that changed.
    subject: String,
    /// The body of the webhook.
    body: Value,
    deliveries: Vec<Delivery>,
    created_at: Timestamp,
}

pub async fn list(
    State(app): State<App>,
    Path(company): Path<CompanyId>,
    query: Query<Pages>,
) -> Result<DataResponse<ListPage<View>>> {
    let page = PageRequest::from(query.read()?);
    let (total, events) = app
        .store
        .read(async |tx| -> Result<_> {
            companies::get(tx, &company).await?;
            let (total, events) = store::list(tx, &company, page).await?;
            let mut deliveries: HashMap<EventId, Vec<Delivery>> = HashMap::new();
            for delivery in store::list_deliveries_of_page(tx, &company, page).await? {
                deliveries.entry(delivery.event_id.clone()).or_default().push(delivery);
            }
            let views = events.into_iter().map(|event| {
                let deliveries = deliveries.remove(&event.id).unwrap_or_default();
                view(event, deliveries)
            });
            Ok((total, views.collect::<Result<Vec<_>>>()?))
        })
        .await?;
    DataResponse::data(page.to_list_page(total, events), "Events fetched successfully")
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
    Path((company, event)): Path<(CompanyId, EventId)>,
) -> Result<DataResponse<Vec<Attempt>>> {
    let attempts = app
        .store
        .read(async |tx| -> Result<_> {
            store::find_event(tx, &company, &event).await?.ok_or_else(not_found)?;
            Ok(store::list_attempts(tx, &company, &event).await?)
        })
        .await?;
    DataResponse::data(attempts, "Attempts fetched successfully")
}

/// The result of a redelivery.
#[derive(Serialize, JsonSchema)]
pub struct Redelivered {
    deliveries: usize,
}

/// Requeues an event for its endpoints, enabling them, and for the company's current URL.
pub async fn redeliver(
    State(app): State<App>,
    Path((company, event)): Path<(CompanyId, EventId)>,
) -> Result<DataResponse<Redelivered>> {
    let db = app.store.clone();
    db.write(async move |tx| {
        store::find_event(tx, &company, &event).await?.ok_or_else(not_found)?;
        let now = app.clock.now();
        if let Some(url) = companies::get(tx, &company).await?.event_url {
            let delivery = Delivery::new(&company, app.random.id(now), &event, url, false);
            store::insert_delivery(tx, &delivery, now).await?;
        }
        let deliveries = store::list_deliveries(tx, &company, &event).await?;
        for delivery in &deliveries {
            store::enable(tx, &company, &delivery.url).await?;
            store::requeue_delivery(tx, &company, &delivery.id).await?;
            jobs::enqueue(tx, &company, DELIVER_JOB, &delivery.id, now).await?;
        }
        audit::record(tx, &app, &company, "event.redeliver", json!({ "event": event })).await?;
        let redelivered = Redelivered { deliveries: deliveries.len() };
        DataResponse::data(redelivered, "Event queued for delivery successfully")
    })
    .await
}

fn not_found() -> Error {
    Error::not_found("event not found")
}
