//! Fetching a payment, for its company and for operators.

use super::{FEATURE, PaymentResponse, find_by_id, find_by_reference, respond_with_user};
use crate::{
    money::payments::PaymentId, state::prelude::*, tenants::companies::AuthenticatedCompany,
};
use tollhouse_platform::values::id::CompanyId;

pub async fn fetch(
    State(app): State<App>,
    AuthenticatedCompany(company): AuthenticatedCompany,
    Path(id): Path<PaymentId>,
) -> Result<PaymentResponse> {
    company.check_feature(FEATURE)?;
    let payment = find_by_id(&app, &company.id, &id).await?;
    respond_with_user(&app, payment, "Payment fetched successfully").await
}

pub async fn fetch_by_reference(
    State(app): State<App>,
    AuthenticatedCompany(company): AuthenticatedCompany,
    Path(reference): Path<String>,
) -> Result<PaymentResponse> {
    company.check_feature(FEATURE)?;
    let payment = find_by_reference(&app, &company.id, &reference).await?;
    respond_with_user(&app, payment, "Payment fetched successfully").await
}

pub async fn fetch_of_company(
    State(app): State<App>,
    Path((company, payment)): Path<(CompanyId, PaymentId)>,
) -> Result<PaymentResponse> {
    let payment = find_by_id(&app, &company, &payment).await?;
    respond_with_user(&app, payment, "Payment fetched successfully").await
}

pub async fn fetch_of_company_by_reference(
    State(app): State<App>,
    Path((company, reference)): Path<(CompanyId, String)>,
) -> Result<PaymentResponse> {
    let payment = find_by_reference(&app, &company, &reference).await?;
    respond_with_user(&app, payment, "Payment fetched successfully").await
}
