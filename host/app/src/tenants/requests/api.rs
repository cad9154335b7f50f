//! Operator API for the API log of a company.

use super::store::{self, ApiRequest};
use crate::tenants::prelude::*;

choices! {
    Outcomes = &["success", "failed", "client_error", "server_error"];
    Methods = &["DELETE", "GET", "HEAD", "POST", "PUT"];
}

fields! {
    /// Cursor and filters of API requests.
    Query RequestList {
        /// The `next` value of the previous response. Default: the newest request.
        after: Cursor,
        /// Maximum number of requests per response; more than 1,000 counts as 1,000.
        limit: Limit<100, 1_000>,
        /// `failed`: `client_error` (status 4xx) or `server_error` (status 5xx).
        outcome: OneOf<Outcomes>,
        method: OneOf<Methods>,
        /// Id of an API key.
        key: Exactly,
        /// The `X-Request-Id` of the response.
        request_id: Exactly,
        /// A day in UTC, or the first and last day of a range.
        created_at: Days,
    }
}

/// A page of API requests.
#[derive(Serialize, JsonSchema)]
pub struct ApiRequests {
    /// Newest first.
    requests: Vec<ApiRequest>,
    /// Cursor of the next page; `null` at the end.
    next: Option<String>,
}

/// Lists the logged API requests of a company.
pub async fn list(
    State(app): State<App>,
    Path(company): Path<CompanyId>,
    query: Query<RequestList>,
) -> Result<DataResponse<ApiRequests>> {
    let filter = query.read()?;
    let read = async |tx: &mut Tx| -> Result<_> {
        companies::get(tx, &company).await?;
        Ok(store::list(tx, &company, &filter).await?)
    };
    let requests = app.store.read(read).await?;
    let next = next_cursor(&requests, filter.limit, |request| &request.id);
    DataResponse::data(ApiRequests { requests, next }, "API requests fetched successfully")
}
