//! One-time payments through hosted checkout, their settlement and their refunds.

pub mod api;
mod flow;
mod refund;
mod settle;
mod store;
mod view;

pub use self::{
    settle::settle_job,
    store::{Payment, PaymentId, Refund, RefundStatus},
    view::EventData,
};
pub use super::charges::Status;
use super::prelude::*;

/// The job that settles a payment and advances its refund.
pub const SETTLE_JOB: &str = "payment.settle";
/// The subject of payments in the reference directory.
pub const SUBJECT: &str = "payment";

/// The names of the payment channels in the API.
pub const CHANNELS: [&str; 6] = ["card", "bank", "ussd", "qr", "mobile_money", "bank_transfer"];

/// The same error for a missing payment and for one of another company.
fn not_found() -> Error {
    Error::not_found("payment not found")
}

async fn find_by_id(app: &App, company_id: &CompanyId, id: &PaymentId) -> Result<Payment> {
    let read = async |tx: &mut Tx| store::find(tx, company_id, id).await;
    app.store.select(read).await?.ok_or_else(not_found)
}

async fn lock(tx: &mut Tx, company_id: &CompanyId, id: &PaymentId) -> Result<Payment> {
    store::lock(tx, company_id, id).await?.ok_or_else(not_found)
}

impl Payment {
    fn as_owner(&self) -> ReferenceOwner<'_> {
        (&self.company_id, SUBJECT, &self.id)
    }

    fn provider(&self, app: &App) -> Result<Provider> {
        app.plugins.provider(&self.payment_service, &self.company_id)
    }

    /// Opens the provider with the credentials under which the payment was created.
    async fn verifier(&self, app: &App) -> Result<ChargeVerifier> {
        ChargeVerifier::open(app, &self.company_id, &self.payment_service, &self.account_id).await
    }

    fn provider_ledger(&self) -> Ledger {
        Ledger::Provider(self.payment_service.clone())
    }
}
