//! What companies are told: written with the change, signed, delivered at least once.
//!
//! Standard Webhooks. No order is promised; the event's id and time let a receiver sort and deduplicate.

pub mod api;
mod deliver;
mod schedule;
mod sign;
mod store;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

pub use self::{api::destination, deliver::deliver_job, store::enable};
use crate::{
    app::App,
    companies,
    error::{Error, Result},
    jobs,
    store::Tx,
};

pub const DELIVER_JOB: &str = "event.deliver";

/// Something that has happened to a record of a company.
pub struct Event {
    /// `payment.success`.
    pub kind: &'static str,
    pub subject_id: String,
    pub data: Value,
    /// Where it is sent beside the company's registered URL.
    pub callback_url: Option<String>,
}

/// What is sent.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "EventOf{Data}")]
pub struct Message<'e, Data> {
    /// Whose event it is.
    company_id: &'e str,
    /// What has happened, such as `payment.success`.
    event: &'e str,
    /// The name of this service.
    service: &'e str,
    data: Data,
}

/// Writes an event and its deliveries in the transaction of the change that it tells of.
pub async fn emit(tx: &mut Tx, app: &App, company_id: &str, event: Event) -> Result<()> {
    let now = app.clock.now();
    let company = companies::get(tx, company_id).await?;
    let id = format!("evt_{}", app.random.id(now));
    let service = &app.settings.service;
    let message = Message { company_id, event: event.kind, service, data: event.data };
    let body = serde_json::to_string(&message).map_err(Error::internal)?;
    store::insert(tx, company_id, &id, event.kind, &event.subject_id, &body, now).await?;
    let mut urls: Vec<String> = company.event_url.into_iter().chain(event.callback_url).collect();
    urls.dedup();
    for url in urls {
        let disabled = store::is_disabled(tx, company_id, &url).await?;
        let delivery = store::Delivery::new(company_id, app.random.id(now), &id, url, disabled);
        store::insert_delivery(tx, &delivery, now).await?;
        if !disabled {
            jobs::wake(tx, company_id, DELIVER_JOB, &delivery.id, now).await?;
        }
    }
    Ok(())
}
