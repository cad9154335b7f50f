//! Storage of prices.

use super::DEFAULT_PLAN;
use tollhouse_platform::{
    store::{FromRow, Result, Tx, params},
    values::money::Minor,
};

#[derive(Debug, FromRow)]
pub struct PriceRow {
    pub company_id: String,
    pub item: String,
    pub amount_minor: Minor,
}

/// Returns the price of the company's plan, else of the default plan.
pub async fn price(tx: &mut Tx, company_id: &str, item: &str) -> Result<Option<Minor>> {
    let price: Option<(Minor,)> = tx
        .sql(
            "SELECT amount_minor FROM prices WHERE company_id IN ($1, $2) AND item = $3
             ORDER BY company_id DESC LIMIT 1",
        )
        .params(params![company_id, DEFAULT_PLAN, item])
        .optional()
        .await?;
    Ok(price.map(|(price,)| price))
}

/// Returns all prices of the default plan, then those of the company's plan.
pub async fn list(tx: &mut Tx, company_id: &str) -> Result<Vec<PriceRow>> {
    tx.sql(
        "SELECT company_id, item, amount_minor FROM prices WHERE company_id IN ($1, $2)
         ORDER BY company_id, item",
    )
    .params(params![company_id, DEFAULT_PLAN])
    .all()
    .await
}

pub async fn upsert(tx: &mut Tx, company_id: &str, item: &str, amount: Minor) -> Result<()> {
    tx.sql(
        "INSERT INTO prices (company_id, item, amount_minor) VALUES ($1, $2, $3)
         ON CONFLICT (company_id, item) DO UPDATE SET amount_minor = excluded.amount_minor",
    )
    .params(params![company_id, item, amount])
    .run()
    .await?;
    Ok(())
}

pub async fn delete(tx: &mut Tx, company_id: &str, item: &str) -> Result<()> {
    // Insert first: a row that a concurrent transaction has not committed is invisible to `DELETE`,
    // but the upsert waits for it.
    upsert(tx, company_id, item, Minor(0)).await?;
    tx.sql("DELETE FROM prices WHERE company_id = $1 AND item = $2")
        .params(params![company_id, item])
        .run()
        .await?;
    Ok(())
}
