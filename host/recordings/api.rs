//! Recorded calls, for operators.

use axum::extract::State;
use serde_json::{Map, Value};

use super::store::{self, Filter, Recorded};
use crate::{
    app::App,
    error::{Error, Result},
    http::{
        answer::Answer,
        fields::fields,
        path::Path,
        query::{Exactly, Limit, PageNumber, Query},
    },
    listing::{Listed, Page},
};

fields! {
    /// Which calls.
    Query RecordingList {
        /// Which page, counted from 1.
        page: PageNumber,
        /// How many a page holds; more than 1,000 counts as 1,000.
        limit: Limit<50, 1_000>,
        /// Of this function, such as `checkout.start`.
        function: Exactly,
        /// Those that were made for this company, by its id.
        company: Exactly,
    }
}

/// Newest first.
pub async fn list(
    State(app): State<App>,
    Path(plugin): Path<String>,
    query: Query<RecordingList>,
) -> Result<Answer<Listed<Recorded>>> {
    let page = Page { number: query.page()?, limit: query.limit()? };
    let filter = Filter { function: query.function()?, company_id: query.company()? };
    let (total, calls) =
        app.store.read(async |tx| store::list(tx, &plugin, &filter, page).await).await?;
    Answer::data(page.of(total, calls), "Recorded calls fetched successfully")
}

/// As `tollhouse plugin replay` takes it.
pub async fn fetch(
    State(app): State<App>,
    Path((plugin, recording)): Path<(String, String)>,
) -> Result<Answer<Map<String, Value>>> {
    let found = app.store.select(async |tx| store::get(tx, &plugin, &recording).await).await?;
    let (company, sealed) =
        found.ok_or_else(|| Error::not_found("there is no such recorded call"))?;
    let opened = app.sealer.open(&store::context(&company, &recording), &sealed);
    let text = opened.map_err(Error::internal)?;
    let recording: Map<String, Value> = serde_json::from_str(&text).map_err(Error::internal)?;
    Answer::data(recording, "Recorded call fetched successfully")
}
