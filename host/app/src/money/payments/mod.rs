//! One-time payments through hosted checkout, their settlement and their refunds.

pub mod api;
mod flow;
mod owner;
mod receive;
mod refund;
mod store;
mod timeline;
mod view;

pub use self::{
    receive::receive,
    store::{Payment, PaymentId, Status},
    view::EventData,
};
use super::prelude::*;

/// The job of the previous version that settled a payment.
pub const FORMER_JOB: &str = "payment.settle";
/// The subject of payments in the reference directory.
pub const SUBJECT: &str = "payment";

/// The same error for a missing payment and for one of another company.
fn not_found() -> Error {
    Error::not_found("payment not found")
}

/// Adds the company and its mode, by which the host recognizes its payments at the provider.
fn with_origin(mut metadata: Map<String, Value>, company: &Company) -> Map<String, Value> {
    metadata.insert("company".to_owned(), company.id.as_str().into());
    metadata.insert("server".to_owned(), company.server.clone().into());
    metadata.insert("event".to_owned(), "payment".into());
    metadata
}

async fn find_by_id(app: &App, company_id: &CompanyId, id: &PaymentId) -> Result<Payment> {
    let read = async |tx: &mut Tx| store::find(tx, company_id, id).await;
    app.store.select(read).await?.ok_or_else(not_found)
}
