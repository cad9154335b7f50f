//! Storage of feeds.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::Identified;
use tollhouse_platform::{
    clock::Timestamp,
    store::{FromRow, Json, Result, Tx, params},
    values::id::CompanyId,
};

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

impl Identified for FeedEntry {
    fn id(&self) -> &str {
        &self.id
    }
}

pub async fn insert(
    tx: &mut Tx,
    stream: &str,
    company_id: &CompanyId,
    id: &str,
    data: Value,
    now: Timestamp,
) -> Result<()> {
    tx.sql(
        "INSERT INTO streams (company_id, id, stream, data, created_at)
         VALUES ($1, $2, $3, $4, $5)",
    )
    .params(params![company_id, id, stream, Json(data), now])
    .run()
    .await?;
    Ok(())
}
