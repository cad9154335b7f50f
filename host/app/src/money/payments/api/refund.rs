//! The refund of a payment, for operators.

use super::{PaymentResponse, respond_with_user};
use crate::{
    money::payments::{PaymentId, Refund, not_found, refund, store},
    state::prelude::*,
    tenants::companies,
};
use tollhouse_platform::values::id::CompanyId;

fields! {
    /// Options of a refund.
    Body RefundOrder {
        /// `true` lets the wallet balance become negative.
        force: Option<Flag>,
    }
}

pub async fn refund(
    State(app): State<App>,
    Path((company, payment)): Path<(CompanyId, PaymentId)>,
    body: Body<RefundOrder>,
) -> Result<PaymentResponse> {
    let force = body.read()?.force.unwrap_or(false);
    companies::find(&app, &company).await?;
    let refunded = refund::refund(&app, &company, &payment, force).await?;
    respond_with_user(&app, refunded, "Payment refunded successfully").await
}

/// Returns the refund of a payment. Its amount is in the payment's currency.
pub async fn fetch_refund(
    State(app): State<App>,
    Path((company, payment)): Path<(CompanyId, PaymentId)>,
) -> Result<DataResponse<Refund>> {
    let read = async |tx: &mut Tx| -> Result<_> {
        store::find(tx, &company, &payment).await?.ok_or_else(not_found)?;
        let refund = store::find_refund(tx, &company, &payment).await?;
        refund.ok_or_else(|| Error::not_found("refund not found"))
    };
    let refund = app.store.read(read).await?;
    DataResponse::data(refund, "Refund fetched successfully")
}
