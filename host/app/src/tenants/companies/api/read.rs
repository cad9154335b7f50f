//! Listing and fetching companies.

use crate::{
    state::prelude::*,
    tenants::companies::{Company, View, find, store},
};
use tollhouse_platform::values::id::CompanyId;

pub async fn list(
    State(app): State<App>,
    query: Query<Pages>,
) -> Result<DataResponse<ListPage<View>>> {
    let page = PageRequest::from(query.read()?);
    let read = async |tx: &mut Tx| store::list(tx, page).await;
    let (total, companies) = app.store.read(read).await?;
    let companies = companies.iter().map(Company::view).collect();
    DataResponse::data(page.to_list_page(total, companies), "Companies fetched successfully")
}

pub async fn fetch(
    State(app): State<App>,
    Path(company): Path<CompanyId>,
) -> Result<DataResponse<View>> {
    let company = find(&app, &company).await?;
    DataResponse::data(company.view(), "Company fetched successfully")
}
