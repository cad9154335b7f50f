//! The statements of sealed columns, as `sealed_column!` makes them.

use crate::{
    seal::SealedColumn,
    store::{Result, Tx},
};

/// Names of keys, and how many rows are sealed under each: one pass through the table.
pub async fn count(tx: &mut Tx, column: &SealedColumn) -> Result<Vec<(String, i64)>> {
    tx.sql(column.count).all().await
}

/// Company, id and sealed text.
pub type Row = (String, String, Option<String>);

/// The rows that follow the one of this company and id.
pub async fn page(
    tx: &mut Tx,
    column: &SealedColumn,
    company_id: &str,
    id: &str,
    most: usize,
) -> Result<Vec<Row>> {
    let most = i64::try_from(most).unwrap_or(i64::MAX);
    tx.sql(column.page).bind(company_id).bind(id).bind(most).all().await
}

/// `false` when the row does not hold the former text any more: whoever wrote it has sealed it anew.
pub async fn replace(
    tx: &mut Tx,
    column: &SealedColumn,
    company_id: &str,
    id: &str,
    former: &str,
    anew: &str,
) -> Result<bool> {
    let replace = tx.sql(column.replace).bind(company_id).bind(id);
    Ok(replace.bind(former).bind(anew).run().await? == 1)
}
