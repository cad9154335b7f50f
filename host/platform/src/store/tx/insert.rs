//! Insertion of many rows.

use super::Tx;
use crate::store::{DynamicStatement, Result, SqlValue};

/// A power of two.
const MAX_ROWS_PER_STATEMENT: usize = 256;

impl Tx {
    /// Inserts rows, many in each statement, and skips those that exist. `insert` ends with
    /// `VALUES` and a space. The numbers of rows are powers of two, so that few texts are prepared.
    pub async fn insert_rows<R>(
        &mut self,
        insert: &'static str,
        mut rows: &[R],
        values: impl Fn(&R) -> Vec<SqlValue>,
    ) -> Result<()> {
        while let Some(power) = rows.len().checked_ilog2() {
            let (some, others) = rows.split_at(MAX_ROWS_PER_STATEMENT.min(1 << power));
            let mut sql = DynamicStatement::from(insert);
            for (n, row) in some.iter().enumerate() {
                sql = sql.append_row(n == 0, values(row));
            }
            self.dynamic(&sql.append(" ON CONFLICT DO NOTHING")).execute().await?;
            rows = others;
        }
        Ok(())
    }
}
