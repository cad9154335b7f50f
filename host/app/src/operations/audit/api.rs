//! Operator API for the audit log.

use super::store::{self, AuditEntry};
use crate::state::prelude::*;
use tollhouse_platform::values::id::Owner;

pub async fn of_service(
    State(app): State<App>,
    query: Query<Pages>,
) -> Result<DataResponse<ListPage<AuditEntry>>> {
    list(&app, &Owner::Service, &query).await
}

/// Returns a page of the log of a company or of the service.
pub async fn list(
    app: &App,
    owner: &Owner,
    query: &Query<Pages>,
) -> Result<DataResponse<ListPage<AuditEntry>>> {
    let page = PageRequest::from(query.read()?);
    let (total, entries) = app.store.read(async |tx| store::list(tx, owner, page).await).await?;
    DataResponse::data(page.to_list_page(total, entries), "Audit log fetched successfully")
}
