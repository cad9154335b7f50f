//! Storage of operator events.

use crate::state::storage::*;

/// An event for operators.
#[derive(Debug, FromRow, Serialize, JsonSchema)]
pub struct OperatorEvent {
    pub id: String,
    /// Kind, for example `wallet.low_balance`.
    pub kind: String,
    /// Company that the event is about; empty for the service as a whole.
    pub company_id: String,
    /// Data, whose fields depend on the kind.
    #[schemars(with = "Value")]
    pub data: Json<Value>,
    pub created_at: Timestamp,
}

pub async fn insert(tx: &mut Tx, app: &App, owner: Owner, kind: &str, data: Value) -> Result<()> {
    let now = app.clock.now();
    tx.sql(
        "INSERT INTO operator_events (company_id, id, kind, data, created_at)
         VALUES ($1, $2, $3, $4, $5)",
    )
    .params(params![owner.column(), app.random.id(now), kind, Json(data), now])
    .execute()
    .await
}

/// Deletes up to `limit` events of all companies with ids before one, and returns their number.
pub async fn sweep(tx: &mut Tx, before: &str, limit: i64) -> Result<u64> {
    tx.sql(
        "DELETE FROM operator_events WHERE (company_id, id) IN (
             SELECT company_id, id FROM operator_events WHERE id < $1
             ORDER BY id LIMIT $2 FOR UPDATE SKIP LOCKED)",
    )
    .params(params![before, limit])
    .run()
    .await
}
