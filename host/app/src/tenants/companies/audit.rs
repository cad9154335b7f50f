//! The audit log of one company, for operators.

use axum::extract::State;

use crate::{
    operations::audit::{AuditEntry, api::list},
    state::App,
};
use tollhouse_http::{
    answer::Answer,
    request::{
        path::Path,
        query::{Pages, Query},
    },
};
use tollhouse_platform::{error::Result, values::listing::Listed};

pub async fn of_company(
    State(app): State<App>,
    Path(company): Path<String>,
    query: Query<Pages>,
) -> Result<Answer<Listed<AuditEntry>>> {
    super::find(&app, &company).await?;
    list(&app, &company, &query).await
}
