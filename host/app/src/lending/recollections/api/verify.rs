//! Verifying a recollection with the provider.

use super::respond_with_user;
use crate::{
    lending::{
        loans::LoanId,
        recollections::{
            FEATURE, Status, not_found,
            settle::{self, RecollectionVerification, still_pending},
            store,
            view::View,
        },
    },
    state::prelude::*,
    tenants::companies::AuthenticatedCompany,
};

pub async fn verify(
    State(app): State<App>,
    AuthenticatedCompany(company): AuthenticatedCompany,
    Path(reference): Path<String>,
) -> Result<DataResponse<View<LoanId>>> {
    company.check_feature(FEATURE)?;
    let read = async |tx: &mut Tx| store::find_by_reference(tx, &company.id, &reference).await;
    let found = app.store.select(read).await?.ok_or_else(not_found)?;
    let recollection = match (found.with_provider, found.status) {
        (false, _) | (_, Status::Success) => found,
        (true, Status::Pending | Status::Failed) => match settle::verify(&app, found).await? {
            RecollectionVerification::Known(recollection) => *recollection,
            RecollectionVerification::Mismatch(_, what) => return Err(Error::invalid(what)),
        },
    };
    if recollection.status == Status::Pending {
        return Err(still_pending());
    }
    respond_with_user(&app, recollection, "Recollection verified successfully").await
}
