//! Storage of prices.

use crate::state::storage::*;

#[derive(Debug, FromRow)]
pub struct PriceRow {
    /// The service for the default plan.
    #[sqlx(rename = "company_id", try_from = "String")]
    pub owner: Owner,
    pub item: String,
    pub amount_minor: Minor,
}

/// Returns all prices of the default plan, then those of the company's plan.
pub async fn list(tx: &mut Tx, owner: &Owner) -> Result<Vec<PriceRow>> {
    tx.sql(
        "SELECT company_id, item, amount_minor FROM prices WHERE company_id IN ($1, $2)
         ORDER BY company_id, item",
    )
    .params(params![owner.column(), Owner::Service.column()])
    .all()
    .await
}

pub async fn upsert(tx: &mut Tx, owner: &Owner, item: &str, amount: Minor) -> Result<()> {
    tx.sql(
        "INSERT INTO prices (company_id, item, amount_minor) VALUES ($1, $2, $3)
         ON CONFLICT (company_id, item) DO UPDATE SET amount_minor = excluded.amount_minor",
    )
    .params(params![owner.column(), item, amount])
    .execute()
    .await
}

pub async fn delete(tx: &mut Tx, owner: &Owner, item: &str) -> Result<()> {
    // Insert first: a row that a concurrent transaction has not committed is invisible to `DELETE`,
    // but the upsert waits for it.
    upsert(tx, owner, item, Minor(0)).await?;
    tx.sql("DELETE FROM prices WHERE company_id = $1 AND item = $2")
        .params(params![owner.column(), item])
        .execute()
        .await
}
