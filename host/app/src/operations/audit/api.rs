//! Operator API for the audit log.

use axum::extract::State;

use super::{
    SERVICE,
    store::{self, AuditEntry},
};
use crate::state::App;
use tollhouse_http::{
    answer::Answer,
    request::query::{Pages, Query},
};
use tollhouse_platform::{error::Result, values::listing::Listed};

pub async fn of_service(
    State(app): State<App>,
    query: Query<Pages>,
) -> Result<Answer<Listed<AuditEntry>>> {
    list(&app, SERVICE, &query).await
}

/// Returns a page of the log of a company, or of [`SERVICE`].
pub async fn list(
    app: &App,
    company: &str,
    query: &Query<Pages>,
) -> Result<Answer<Listed<AuditEntry>>> {
    let page = query.read()?;
    let (total, entries) = app.store.read(async |tx| store::list(tx, company, page).await).await?;
    Answer::data(page.of(total, entries), "Audit log fetched successfully")
}
