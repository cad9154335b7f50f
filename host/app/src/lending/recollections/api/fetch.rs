//! Fetching a recollection.

use super::respond_with_user;
use crate::{
    customers as users,
    lending::{
        loans,
        loans::LoanId,
        recollections::{FEATURE, RecollectionId, not_found, store, view::View},
    },
    state::prelude::*,
    tenants::companies::AuthenticatedCompany,
};

pub async fn fetch(
    State(app): State<App>,
    AuthenticatedCompany(company): AuthenticatedCompany,
    Path(id): Path<RecollectionId>,
) -> Result<DataResponse<View<LoanId>>> {
    company.check_feature(FEATURE)?;
    let found = app.store.select(async |tx| store::find(tx, &company.id, &id).await).await?;
    let recollection = found.ok_or_else(not_found)?;
    respond_with_user(&app, recollection, "Recollection fetched successfully").await
}

pub async fn fetch_by_reference(
    State(app): State<App>,
    AuthenticatedCompany(company): AuthenticatedCompany,
    Path(reference): Path<String>,
) -> Result<DataResponse<View<loans::View>>> {
    company.check_feature(FEATURE)?;
    let read = async |tx: &mut Tx| -> Result<_> {
        let found = store::find_by_reference(tx, &company.id, &reference).await?;
        let recollection = found.ok_or_else(not_found)?;
        let loan = loans::find(tx, &company.id, &recollection.loan_id).await?;
        let loan = loan.ok_or_else(|| Error::internal("loan of a recollection not found"))?;
        let entries = loans::list_installments(tx, &company.id, &loan.id).await?;
        let user = users::find_by_id(tx, &company.id, &recollection.user_key).await?;
        Ok((recollection, loan.view(entries), user))
    };
    let (recollection, loan, user) = app.store.read(read).await?;
    let user = user.map(|user| user.view(app.clock.now()));
    DataResponse::data(recollection.view_with_loan(user, loan), "Recollection fetched successfully")
}
