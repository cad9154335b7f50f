//! Operator API for operator events.

use super::store::OperatorEvent;
use crate::{operations::feeds, state::prelude::*};
use tollhouse_platform::store::DynamicStatement;

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
    let Reading { after, kind, company, limit } = query.read()?;
    let select = "SELECT id, kind, company_id, data, created_at FROM operator_events WHERE id > ";
    let select = DynamicStatement::from(select).bind(&after);
    let select = select.append_if(" AND kind = ", kind.as_ref());
    let select = select.append_if(" AND company_id = ", company.as_ref());
    let (events, next) =
        feeds::page(&app, select, after, limit, |event: &OperatorEvent| &event.id).await?;
    DataResponse::data(OperatorEvents { events, next }, "Events fetched successfully")
}
