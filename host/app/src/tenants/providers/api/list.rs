//! Listing accounts.

use super::{View, view};
use crate::{
    state::prelude::*,
    tenants::{
        companies,
        providers::{AccountOwner, Mode, store},
    },
};
use tollhouse_platform::values::id::CompanyId;

const LISTED: &str = "Providers fetched successfully";

pub async fn list_for_service(State(app): State<App>) -> Result<DataResponse<Vec<View>>> {
    let read = async |tx: &mut Tx| -> Result<_> {
        let live = store::list(tx, &AccountOwner::Service(Mode::Live)).await?.into_iter();
        let test = store::list(tx, &AccountOwner::Service(Mode::Test)).await?.into_iter();
        let live = live.map(|account| (account, Mode::Live));
        Ok(live.chain(test.map(|account| (account, Mode::Test))).collect::<Vec<_>>())
    };
    let mut accounts = app.store.read(read).await?;
    accounts.sort_by(|(one, _), (other, _)| one.provider.cmp(&other.provider));
    let accounts = accounts.into_iter().map(|(account, mode)| view(account, mode, &app));
    DataResponse::data(accounts.collect(), LISTED)
}

pub async fn list_for_company(
    State(app): State<App>,
    Path(company): Path<CompanyId>,
) -> Result<DataResponse<Vec<View>>> {
    let mode = Mode::of(&companies::find(&app, &company).await?);
    let owner = AccountOwner::Company(company);
    let accounts = app.store.select(async |tx| store::list(tx, &owner).await).await?;
    let accounts = accounts.into_iter().map(|account| view(account, mode, &app));
    DataResponse::data(accounts.collect(), LISTED)
}
