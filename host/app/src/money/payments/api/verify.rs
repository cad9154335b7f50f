//! Verifying a payment with the provider, for its company and for operators.

use super::{FEATURE, PaymentResponse, find_by_id, find_by_reference, respond_with_user};
use crate::{
    money::payments::{
        Payment, PaymentId, Status,
        settle::{self, PaymentVerification},
    },
    operations::audit,
    state::prelude::*,
    tenants::companies::AuthenticatedCompany,
};
use tollhouse_platform::values::id::CompanyId;

pub async fn verify(
    State(app): State<App>,
    AuthenticatedCompany(company): AuthenticatedCompany,
    Path(reference): Path<String>,
) -> Result<PaymentResponse> {
    company.check_feature(FEATURE)?;
    let payment =
        verify_unless_final(&app, find_by_reference(&app, &company.id, &reference).await?).await?;
    if payment.status == Status::Pending {
        return Err(Error::invalid("payment still pending"));
    }
    respond_with_user(&app, payment, "Payment verified successfully").await
}

/// Verifies a payment with the provider, unless its status is final.
async fn verify_unless_final(app: &App, payment: Payment) -> Result<Payment> {
    match payment.status {
        Status::Success | Status::Refunded => Ok(payment),
        Status::Pending | Status::Failed => match settle::verify(app, &payment).await? {
            PaymentVerification::Known(payment) => Ok(*payment),
            PaymentVerification::Unknown => Ok(payment),
            PaymentVerification::Mismatch(_, what) => Err(Error::invalid(what)),
        },
    }
}

/// Verifies a payment for an operator. A pending payment is not an error here.
pub async fn verify_of_company(
    State(app): State<App>,
    Path((company, payment)): Path<(CompanyId, PaymentId)>,
) -> Result<PaymentResponse> {
    let payment = find_by_id(&app, &company, &payment).await?;
    let (asked, db, noted) = (app.clone(), app.store.clone(), payment.id.clone());
    db.write(async move |tx| {
        audit::record(tx, &asked, &company, "payment.verify", json!({ "payment": noted })).await
    })
    .await?;
    let payment = verify_unless_final(&app, payment).await?;
    respond_with_user(&app, payment, "Payment verified successfully").await
}
