//! Storage of feeds.

use super::Feed;
use crate::state::storage::*;

/// An entry about a company.
#[derive(Debug, FromRow, Serialize, JsonSchema)]
#[schemars(rename = "StreamEntry")]
pub struct FeedEntry {
    pub id: String,
    pub company_id: CompanyId,
    #[schemars(with = "Value")]
    pub data: Json<Value>,
    pub created_at: Timestamp,
}

pub async fn write(
    tx: &mut Tx,
    app: &App,
    Feed(feed): Feed,
    company_id: &CompanyId,
    data: Value,
) -> Result<()> {
    let now = app.clock.now();
    tx.defer(
        "INSERT INTO streams (company_id, id, stream, data, created_at)
         VALUES ($1, $2, $3, $4, $5)",
    )
    .params(params![company_id, app.random.id(now), feed, Json(data), now])
    .execute()
    .await
}
