//! Totals of lists without counting their rows: triggers count them by day and by the values that
//! lists filter by. On PostgreSQL they insert deltas, so that writers do not wait for each other,
//! and a task adds the deltas to the counts.

use super::App;
use tollhouse_platform::{
    error::Result,
    store::{DynamicStatement, Tx},
    values::id::CompanyId,
};

/// Begins the query of a [`ListTotal`](tollhouse_platform::store::ListTotal) that counts rows.
pub const SELECT_COUNT: &str = "SELECT COUNT(*) AS number, CAST(NULL AS BIGINT) AS first_day,
     CAST(NULL AS BIGINT) AS last_day";

/// Begins the query of a [`ListTotal`](tollhouse_platform::store::ListTotal) that reads the counts.
/// Conditions on columns of `list_totals` can be appended; periods must be whole days.
pub fn select_total(company_id: &CompanyId, list: &'static str) -> DynamicStatement {
    DynamicStatement::from(
        "SELECT CAST(COALESCE(SUM(number), 0) AS BIGINT) AS number, MIN(day) AS first_day,
             MAX(day) AS last_day
         FROM list_totals WHERE number <> 0 AND company_id = ",
    )
    .bind(company_id)
    .append(" AND list = ")
    .bind(list)
}

/// Adds the deltas to the counts.
pub async fn fold(app: &App) -> Result<()> {
    if !app.store.is_postgres() {
        return Ok(());
    }
    let fold = async |tx: &mut Tx, most: i64| {
        let folded: i64 = tx.sql("SELECT fold_list_deltas($1)").bind(most).value().await?;
        Ok(folded.unsigned_abs())
    };
    app.store.write_in_batches(fold).await?;
    Ok(())
}
