//! Operator API for recordings of plugin calls.

use axum::extract::State;
use serde_json::{Map, Value};

use super::store::{self, Filter, RecordedCall};
use crate::state::App;
use tollhouse_http::{
    request::{
        fields::fields,
        path::Path,
        query::{Exactly, Limit, PageNumber, Query},
    },
    response::DataResponse,
};
use tollhouse_platform::{
    error::{Error, Result},
    values::{
        id::CompanyId,
        listing::{ListPage, PageRequest},
    },
};

fields! {
    /// Page and filters of recordings.
    Query RecordingList {
        /// Page number, counted from 1.
        page: PageNumber,
        /// Recordings per page; more than 1,000 counts as 1,000.
        limit: Limit<50, 1_000>,
        /// Called function, for example `checkout.start`.
        function: Exactly,
        /// Id of the company for which the calls were made.
        company: Exactly,
    }
}

/// Lists recordings, newest first.
pub async fn list(
    State(app): State<App>,
    Path(plugin): Path<String>,
    query: Query<RecordingList>,
) -> Result<DataResponse<ListPage<RecordedCall>>> {
    let page = PageRequest { number: query.page()?, limit: query.limit()? };
    let filter =
        Filter { function: query.function()?, company_id: query.company()?.map(CompanyId::from) };
    let (total, calls) =
        app.store.read(async |tx| store::list(tx, &plugin, &filter, page).await).await?;
    DataResponse::data(page.to_list_page(total, calls), "Recorded calls fetched successfully")
}

/// Returns a recording in the format of `tollhouse plugin replay`.
pub async fn fetch(
    State(app): State<App>,
    Path((plugin, recording)): Path<(String, String)>,
) -> Result<DataResponse<Map<String, Value>>> {
    let found = app.store.select(async |tx| store::find(tx, &plugin, &recording).await).await?;
    let (company, sealed) = found.ok_or_else(|| Error::not_found("recorded call not found"))?;
    let opened = app.sealer.open(&store::context(&company, &recording), &sealed);
    let text = opened.map_err(Error::internal)?;
    let recording: Map<String, Value> = serde_json::from_str(&text).map_err(Error::internal)?;
    DataResponse::data(recording, "Recorded call fetched successfully")
}
