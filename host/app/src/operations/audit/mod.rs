//! Audit log: operator actions, appended in the transaction of the action. Never contains secrets.

mod store;

pub use self::store::{AuditEntry, record};
use crate::state::prelude::*;

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
    let entries = app.store.read(async |tx| store::list(tx, owner, page).await).await?;
    DataResponse::data(entries, "Audit log fetched successfully")
}
