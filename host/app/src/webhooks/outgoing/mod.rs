//! Webhooks to companies: committed with the change, signed, delivered at least once.
//!
//! They follow Standard Webhooks. Receivers sort and deduplicate by the event's time and id.

pub mod api;
mod deliver;
pub mod endpoints;
mod example;
mod schedule;
mod sign;
mod store;

pub use self::{
    deliver::deliver_job,
    endpoints::SEALED,
    sign::signatures,
    store::{EventId, enable, list_of_subject},
};

use url::Url;

use crate::tenants::prelude::*;

pub const DELIVER_JOB: &str = "event.deliver";

/// The types of events. `routes::webhooks` has their data.
pub const TYPES: [&str; 20] = [
    "card.validation.success", "card.validation.failed", "direct_debit.created",
    "direct_debit.approved", "direct_debit.ready", "direct_debit.cancelled", "payment.success",
    "payment.failed", "payment.refunded", "payment.partly_refunded", "payment.disputed",
    "payment.dispute_closed", "recollection.success", "recollection.failed",
    "recollection.reversed", "recollection.disputed", "recollection.dispute_closed",
    "installment.upcoming", "installment.due", "installment.overdue",
];

/// A change of a company's record.
pub struct Event {
    /// One of [`TYPES`].
    pub kind: &'static str,
    pub subject_id: String,
    pub data: Value,
    /// Webhook endpoint in addition to the company's registered one.
    pub callback_url: Option<String>,
}

/// The body of a webhook.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "EventOf{Data}")]
pub struct Message<'e, Data> {
    /// The company whose record changed.
    company_id: &'e CompanyId,
    /// The kind of event, for example `payment.success`.
    event: &'e str,
    /// The name of this service.
    service: &'e str,
    data: Data,
}

/// Writes an event and its deliveries in the transaction of the change that it reports.
pub async fn emit(tx: &mut Tx, app: &App, company_id: &CompanyId, event: Event) -> Result<()> {
    debug_assert!(TYPES.contains(&event.kind), "no endpoint can receive {}", event.kind);
    let now = app.clock.now();
    let callback_url = event.callback_url.as_deref();
    let destinations = store::destinations(tx, company_id, event.kind, callback_url).await?;
    let id = EventId::from(format!("evt_{}", app.random.id(now)));
    let service = &app.settings.service.service;
    let message = Message { company_id, event: event.kind, service, data: event.data };
    let body = serde_json::to_string(&message).map_err(Error::internal)?;
    store::insert(tx, company_id, &id, event.kind, &event.subject_id, &body, now).await?;
    for destination in destinations {
        let delivery_id = app.random.id(now);
        store::insert_delivery(tx, company_id, &delivery_id, &id, &destination, now).await?;
        if !destination.disabled {
            enqueue_delivery(tx, company_id, &delivery_id, &destination.url, now).await?;
        }
    }
    Ok(())
}

/// Enqueues the delivery's job. Its destination is the origin: a server that hangs does so for all
/// of its URLs.
async fn enqueue_delivery(
    tx: &mut Tx,
    company_id: &CompanyId,
    delivery_id: &str,
    url: &str,
    now: Timestamp,
) -> Result<()> {
    let origin = Url::parse(url).map(|url| url.origin().ascii_serialization());
    let destination = origin.unwrap_or_default();
    Ok(jobs::enqueue_to(tx, company_id, DELIVER_JOB, delivery_id, &destination, now).await?)
}
