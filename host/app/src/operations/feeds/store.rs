//! Storage of feeds.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

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

/// Returns entries of a feed between two ids, of one company or of all, oldest first.
pub async fn read(
    tx: &mut Tx,
    stream: &str,
    [after, before]: [&str; 2],
    company_id: Option<&String>,
    limit: i64,
) -> Result<Vec<FeedEntry>> {
    tx.sql(
        "SELECT id, company_id, data, created_at FROM streams
         WHERE stream = $1 AND id > $2 AND id < $3
             AND (CAST($4 AS TEXT) IS NULL OR company_id = $4)
         ORDER BY id LIMIT $5",
    )
    .params(params![stream, after, before, company_id, limit])
    .all()
    .await
}
