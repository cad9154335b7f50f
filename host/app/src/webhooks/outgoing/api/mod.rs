//! The operator API for events: list, inspect and redeliver. `company` contains the API for
//! companies.

mod company;

use std::collections::{HashMap, HashSet};

pub use self::company::{read, trigger, trigger_of_company};
use super::{
    EventId, endpoints, enqueue_delivery,
    store::{self, Attempt, Delivery, Destination, EventRow},
};
use crate::tenants::prelude::*;

pub async fn list(
    State(app): State<App>,
    Path(company): Path<CompanyId>,
    query: Query<Pages>,
) -> Result<DataResponse<ListPage<EventRow>>> {
    let page = PageRequest::from(query.read()?);
    let events = app
        .store
        .read(async |tx| -> Result<_> {
            companies::get(tx, &company).await?;
            let mut events = store::list(tx, &company, page).await?;
            let mut deliveries: HashMap<EventId, Vec<Delivery>> = HashMap::new();
            for delivery in store::list_deliveries_of_page(tx, &company, page).await? {
                deliveries.entry(delivery.event_id.clone()).or_default().push(delivery);
            }
            for event in &mut events.docs {
                event.deliveries = deliveries.remove(&event.id).unwrap_or_default();
            }
            Ok(events)
        })
        .await?;
    DataResponse::data(events, "Events fetched successfully")
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

/// Requeues an event for its URLs, enabling them, and for the company's current URL and event
/// endpoints.
pub async fn redeliver(
    State(app): State<App>,
    actor: Actor,
    Path((company, event)): Path<(CompanyId, EventId)>,
) -> Result<DataResponse<Redelivered>> {
    let db = app.store.clone();
    db.write(async move |tx| {
        let found = store::find_event(tx, &company, &event).await?.ok_or_else(not_found)?;
        let now = app.clock.now();
        for destination in store::destinations(tx, &company, &found.kind, None).await? {
            let (id, destination) =
                (app.random.id(now), Destination { disabled: false, ..destination });
            store::insert_delivery(tx, &company, &id, &event, &destination, now).await?;
        }
        let endpoints = endpoints::list(tx, &company).await?.into_iter();
        let active: HashSet<String> =
            endpoints.filter(|endpoint| endpoint.active).map(|endpoint| endpoint.url).collect();
        let mut deliveries = store::list_deliveries(tx, &company, &event).await?;
        deliveries.retain(|delivery| !delivery.for_endpoint || active.contains(&delivery.url));
        for delivery in &deliveries {
            store::enable(tx, &company, &delivery.url).await?;
            store::requeue_delivery(tx, &company, &delivery.id).await?;
            enqueue_delivery(tx, &company, &delivery.id, &delivery.url, now).await?;
        }
        audit::record(tx, &app, &actor, &company, "event.redeliver", json!({ "event": event }))
            .await?;
        let redelivered = Redelivered { deliveries: deliveries.len() };
        DataResponse::data(redelivered, "Event queued for delivery successfully")
    })
    .await
}

fn not_found() -> Error {
    Error::not_found("event not found")
}
