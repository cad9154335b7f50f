//! Operator API for operator events.

use axum::extract::State;
use schemars::JsonSchema;
use serde::Serialize;

use super::store::OperatorEvent;
use crate::{
    operations::feeds::{Range, page},
    state::App,
};
use tollhouse_http::{
    request::{
        fields::fields,
        query::{Cursor, Exactly, Limit, Query},
    },
    response::DataResponse,
};
use tollhouse_platform::{error::Result, store::DynamicStatement};

fields! {
    /// Range and filters of operator events.
    Query Reading {
        /// `next` of the previous response; default: the first event.
        after: Cursor,
        /// Kind of events.
        kind: Exactly,
        /// Id of a company, to return only its events.
        company: Exactly,
        /// Maximum number of events; more than 1,000 counts as 1,000.
        limit: Limit<100, 1_000>,
    }
}

/// A page of operator events.
#[derive(Serialize, JsonSchema)]
pub struct OperatorEvents {
    /// Oldest first.
    events: Vec<OperatorEvent>,
    /// Cursor of the next request, also if there are no events.
    next: String,
}

pub async fn read(
    State(app): State<App>,
    query: Query<Reading>,
) -> Result<DataResponse<OperatorEvents>> {
    let range = Range { after: query.after()?, limit: query.limit()? };
    let (kind, company) = (query.kind()?, query.company()?);
    let select = "SELECT id, kind, company_id, data, created_at FROM operator_events WHERE id > ";
    let filter = |sql: DynamicStatement| {
        sql.append_if(" AND kind = ", kind.as_ref())
            .append_if(" AND company_id = ", company.as_ref())
    };
    let (events, next) = page(&app, range, select, filter).await?;
    DataResponse::data(OperatorEvents { events, next }, "Events fetched successfully")
}
