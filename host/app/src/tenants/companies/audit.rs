//! The audit log of one company, for operators.

use axum::extract::State;

use crate::{
    operations::audit::{AuditEntry, api::list},
    state::App,
};
use tollhouse_http::{
    request::{
        path::Path,
        query::{Pages, Query},
    },
    response::DataResponse,
};
use tollhouse_platform::{
    error::Result,
    values::{id::CompanyId, listing::ListPage},
};

pub async fn of_company(
    State(app): State<App>,
    Path(company): Path<CompanyId>,
    query: Query<Pages>,
) -> Result<DataResponse<ListPage<AuditEntry>>> {
    super::find(&app, &company).await?;
    list(&app, &company.into(), &query).await
}
