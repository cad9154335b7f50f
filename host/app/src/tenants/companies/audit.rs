//! The audit log of one company, for operators.

use crate::{
    operations::audit::{AuditEntry, api::list},
    state::prelude::*,
};
use tollhouse_platform::values::id::CompanyId;

pub async fn of_company(
    State(app): State<App>,
    Path(company): Path<CompanyId>,
    query: Query<Pages>,
) -> Result<DataResponse<ListPage<AuditEntry>>> {
    super::find(&app, &company).await?;
    list(&app, &company.into(), &query).await
}
