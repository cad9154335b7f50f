//! Operator API for recordings of plugin calls.

use super::store::{self, RecordedCall};
use crate::state::prelude::*;

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
    let filter = query.read()?;
    let page = PageRequest { number: filter.page, limit: filter.limit };
    let calls = app.store.read(async |tx| store::list(tx, &plugin, &filter, page).await).await?;
    DataResponse::data(calls, "Recorded calls fetched successfully")
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
