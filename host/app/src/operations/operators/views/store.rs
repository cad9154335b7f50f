//! Storage of saved views.

use crate::state::storage::*;

/// The filters of a list under a name.
#[derive(Clone, Debug, FromRow, Serialize, JsonSchema)]
#[schemars(rename = "SavedView")]
pub struct View {
    /// Name of the list, for example `payments`.
    pub list: String,
    pub name: String,
    /// The values of the list's filters.
    #[schemars(with = "std::collections::BTreeMap<String, String>")]
    pub filters: Json<Map<String, Value>>,
    pub saved_at: Timestamp,
}

pub async fn list(tx: &mut Tx, operator: &str) -> Result<Vec<View>> {
    tx.sql(
        "SELECT list, name, filters, saved_at FROM operator_views WHERE operator_id = $1
         ORDER BY list, name",
    )
    .params(params![operator])
    .all()
    .await
}

pub async fn upsert(tx: &mut Tx, operator: &str, view: &View) -> Result<()> {
    tx.sql(
        "INSERT INTO operator_views (operator_id, list, name, filters, saved_at)
         VALUES ($1, $2, $3, $4, $5)
         ON CONFLICT (operator_id, list, name) DO UPDATE SET filters = $4, saved_at = $5",
    )
    .params(params![operator, &view.list, &view.name, view.filters.clone(), view.saved_at])
    .execute()
    .await
}

pub async fn count(tx: &mut Tx, operator: &str) -> Result<i64> {
    tx.sql("SELECT COUNT(*) FROM operator_views WHERE operator_id = $1")
        .params(params![operator])
        .value()
        .await
}

pub async fn delete(tx: &mut Tx, operator: &str, list: &str, name: &str) -> Result<bool> {
    tx.sql("DELETE FROM operator_views WHERE operator_id = $1 AND list = $2 AND name = $3")
        .params(params![operator, list, name])
        .affects_one()
        .await
}
