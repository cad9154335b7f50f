//! Reading the audit log.

use axum::extract::State;

use super::{
    SERVICE,
    store::{self, Entry},
};
use crate::{
    app::App,
    companies,
    error::Result,
    http::{
        answer::Answer,
        path::Path,
        query::{Pages, Query},
    },
    listing::Listed,
};

pub async fn of_company(
    State(app): State<App>,
    Path(company): Path<String>,
    query: Query<Pages>,
) -> Result<Answer<Listed<Entry>>> {
    companies::find(&app, &company).await?;
    list(&app, &company, &query).await
}

pub async fn of_service(
    State(app): State<App>,
    query: Query<Pages>,
) -> Result<Answer<Listed<Entry>>> {
    list(&app, SERVICE, &query).await
}

async fn list(app: &App, company: &str, query: &Query<Pages>) -> Result<Answer<Listed<Entry>>> {
    let page = query.read()?;
    let (total, entries) = app.store.read(async |tx| store::list(tx, company, page).await).await?;
    Answer::data(page.of(total, entries), "Audit log fetched successfully")
}
