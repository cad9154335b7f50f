//! The statements of sealed columns, which stand beside their tables' others.

use crate::{
    seal::SealedColumn,
    store::{Result, Tx},
};

/// Names of keys, and how many rows are sealed under each.
pub async fn count(tx: &mut Tx, column: &SealedColumn) -> Result<Vec<(String, i64)>> {
    tx.sql(column.count).all().await
}

/// Company, id and sealed text of rows under a key, locked until the transaction ends.
pub async fn find(
    tx: &mut Tx,
    column: &SealedColumn,
    key: &str,
    most: usize,
) -> Result<Vec<(String, String, String)>> {
    let most = i64::try_from(most).unwrap_or(i64::MAX);
    tx.sql(column.find).bind(key).bind(most).all().await
}

pub async fn replace(
    tx: &mut Tx,
    column: &SealedColumn,
    company_id: &str,
    id: &str,
    sealed: &str,
) -> Result<()> {
    tx.sql(column.replace).bind(company_id).bind(id).bind(sealed).run().await?;
    Ok(())
}
