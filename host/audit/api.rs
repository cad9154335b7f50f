//! Reading the audit log.

use axum::extract::State;

use super::{SERVICE, store};
use crate::{
    app::App,
    companies,
    error::Result,
    http::{answer::Answer, path::Path, query::Query},
};

pub async fn of_company(
    State(app): State<App>,
    Path(company): Path<String>,
    query: Query,
) -> Result<Answer> {
    companies::find(&app, &company).await?;
    list(&app, &company, &query).await
}

pub async fn of_service(State(app): State<App>, query: Query) -> Result<Answer> {
    list(&app, SERVICE, &query).await
}

async fn list(app: &App, company: &str, query: &Query) -> Result<Answer> {
    let page = query.page(50, 1_000)?;
    let (total, entries) = app.store.read(async |tx| store::list(tx, company, page).await).await?;
    Answer::data(page.of(total, entries), "Audit log fetched successfully")
}
