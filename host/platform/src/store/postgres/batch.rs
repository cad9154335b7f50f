//! Deferred statements, which are sent to PostgreSQL together as one statement.

use std::fmt::Write as _;

use sqlx::{Arguments, AssertSqlSafe, Executor};
use sqlx_postgres::{PgArguments, PgConnection};

/// Statements that have not been sent. Each is a part of one `WITH` query, so they run in one
/// snapshot and one round trip.
#[derive(Default)]
pub(in crate::store) struct Batch {
    text: String,
    /// An expression for each statement. For one that must affect one row, it divides by zero if
    /// the statement does not. PostgreSQL 15 runs the statements in the order of these
    /// expressions, which saves time but is not needed.
    results: String,
    /// The statements, in order.
    statements: Vec<&'static str>,
    parameters: usize,
    pub values: PgArguments,
}

/// The SQLSTATE of a batch in which a statement did not affect one row: a division by zero, which
/// no other statement makes.
pub(in crate::store) const NOT_ONE_ROW: &str = "22012";

impl Batch {
    /// Returns whether a statement must wait for this batch: two of one kind could affect the same
    /// row, which one query must not do twice. Those that only insert rows cannot.
    pub fn excludes(&self, sql: &str) -> bool {
        let only_inserts = sql.starts_with("INSERT") && !sql.contains("ON CONFLICT");
        !only_inserts && self.statements.contains(&sql)
    }

    /// Adds a statement whose parameters are the last `count` of `values`.
    pub fn push(&mut self, sql: &'static str, count: usize, affects_one: bool) {
        assert_eq!(self.values.len(), self.parameters + count, "values of another statement");
        let number = self.statements.len();
        self.text.push_str(if number == 0 { "WITH " } else { ", " });
        // Writing to a string cannot fail.
        let _ = write!(self.text, "s{number} AS (");
        renumber(sql, self.parameters, &mut self.text);
        self.text.push_str(" RETURNING 1)");
        self.results.push_str(if number == 0 { "" } else { ", " });
        let _ = match affects_one {
            true => {
                write!(self.results, "1 / CAST((SELECT COUNT(*) FROM s{number}) = 1 AS INTEGER)")
            }
            false => write!(self.results, "(SELECT COUNT(*) FROM s{number})"),
        };
        self.parameters += count;
        self.statements.push(sql);
    }

    /// Sends the batch. Fails with [`NOT_ONE_ROW`], and changes nothing, if a statement that must
    /// affect one row affects another number.
    pub async fn run(mut self, connection: &mut PgConnection) -> sqlx::Result<()> {
        let _ = write!(self.text, " SELECT {}", self.results);
        // Safe: its text consists of statements of this program.
        let query = sqlx::query_with(AssertSqlSafe(self.text), self.values);
        connection.execute(query).await.map(drop)
    }
}

/// Appends a statement, with `offset` added to the numbers of its parameters.
fn renumber(sql: &str, offset: usize, text: &mut String) {
    let mut pieces = sql.split('$');
    text.push_str(pieces.next().unwrap_or_default());
    for piece in pieces {
        let digits = piece.bytes().take_while(u8::is_ascii_digit).count();
        let number: usize = piece[..digits].parse().unwrap_or_default();
        let _ = write!(text, "${}{}", number + offset, &piece[digits..]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_become_parts_of_one_query() {
        let mut batch = Batch::default();
        let mut push = |sql, values: i64, affects_one| {
            for value in 0..values {
                batch.values.add(value).expect("a number");
            }
            batch.push(sql, usize::try_from(values).expect("a count"), affects_one);
        };
        push("INSERT INTO a VALUES ($1, $2, $1)", 2, false);
        push("UPDATE b SET c = $10 WHERE d = $1", 10, true);
        push("DELETE FROM e", 0, true);
        assert_eq!(
            batch.text,
            "WITH s0 AS (INSERT INTO a VALUES ($1, $2, $1) RETURNING 1), \
             s1 AS (UPDATE b SET c = $12 WHERE d = $3 RETURNING 1), \
             s2 AS (DELETE FROM e RETURNING 1)"
        );
        assert_eq!(
            batch.results,
            "(SELECT COUNT(*) FROM s0), \
             1 / CAST((SELECT COUNT(*) FROM s1) = 1 AS INTEGER), \
             1 / CAST((SELECT COUNT(*) FROM s2) = 1 AS INTEGER)"
        );
        assert!(batch.excludes("DELETE FROM e") && !batch.excludes("DELETE FROM f"));
        assert!(!batch.excludes("INSERT INTO a VALUES ($1, $2, $1)"));
    }
}
