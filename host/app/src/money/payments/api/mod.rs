//! The payment endpoints of the specification, and those for operators.

mod fetch;
mod initialize;
mod list;
mod refund;
mod verify;

pub use self::{
    fetch::{fetch, fetch_by_reference, fetch_of_company, fetch_of_company_by_reference},
    initialize::{NewPayment, initialize},
    list::{PaymentFilter, list, list_of_company},
    refund::{fetch_refund, refund},
    verify::{verify, verify_of_company},
};
use super::{Payment, not_found, store, view::View};
use crate::{customers as users, money::payments::PaymentId, state::prelude::*};
use tollhouse_platform::values::id::CompanyId;

const FEATURE: &str = "payments";

type PaymentResponse = DataResponse<View<users::View>>;

async fn find_by_id(app: &App, company_id: &CompanyId, id: &PaymentId) -> Result<Payment> {
    let read = async |tx: &mut Tx| store::find(tx, company_id, id).await;
    app.store.select(read).await?.ok_or_else(not_found)
}

async fn find_by_reference(app: &App, company_id: &CompanyId, reference: &str) -> Result<Payment> {
    let read = async |tx: &mut Tx| store::find_by_reference(tx, company_id, reference).await;
    app.store.select(read).await?.ok_or_else(not_found)
}

async fn respond_with_user(
    app: &App,
    payment: Payment,
    message: &'static str,
) -> Result<PaymentResponse> {
    let mut users = Vec::new();
    if let Some(id) = &payment.user_key {
        let id = std::slice::from_ref(id);
        let read = async |tx: &mut Tx| users::find_by_ids(tx, &payment.company_id, id).await;
        users = app.store.select(read).await?;
    }
    DataResponse::data(payment.view_with_user(&users, app.clock.now()), message)
}
