//! Operator API for operator events.

use axum::extract::State;
use schemars::JsonSchema;
use serde::Serialize;

use super::store::{self, EventQuery, OperatorEvent};
use crate::{operations::feeds as streams, state::App};
use tollhouse_http::{
    request::{
        fields::fields,
        query::{Cursor, Exactly, Limit, Query},
    },
    response::DataResponse,
};
use tollhouse_platform::{error::Result, values::id::CompanyId};

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
    let part = EventQuery {
        after: query.after()?,
        kind: query.kind()?,
        company_id: query.company()?.map(CompanyId::from),
        limit: query.limit()?,
        before: streams::visibility_horizon(&app),
    };
    let events = app.store.select(async |tx| store::read(tx, &part).await).await?;
    let ids = events.iter().map(|event| &*event.id);
    let next = streams::next_cursor(ids, part.limit, [&part.after, &part.before]);
    DataResponse::data(OperatorEvents { events, next }, "Events fetched successfully")
}
