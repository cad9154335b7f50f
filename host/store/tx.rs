//! A transaction and its statements, whichever engine they are for.

use sqlx::{
    AssertSqlSafe, Encode, FromRow, SqlSafeStr, SqlStr, Type,
    postgres::{PgArguments, PgRow, Postgres},
    sqlite::{Sqlite, SqliteArguments, SqliteRow},
};

use super::Result;

/// A transaction: the only way to the data.
pub struct Tx {
    connection: Connection,
    woke_jobs: bool,
}

pub(super) enum Connection {
    Sqlite(sqlx::Transaction<'static, Sqlite>),
    Postgres(sqlx::Transaction<'static, Postgres>),
}

impl Tx {
    pub(super) fn new(connection: Connection) -> Tx {
        Tx { connection, woke_jobs: false }
    }

    /// Starts a statement; bind its parameters, then ask for what it returns.
    pub fn sql(&mut self, sql: &'static str) -> Statement<'_> {
        let unbound = parameters(sql);
        let engine = match &mut self.connection {
            Connection::Sqlite(tx) => Engine::Sqlite(tx, sqlx::query(without_row_locks(sql))),
            Connection::Postgres(tx) => Engine::Postgres(tx, sqlx::query(sql)),
        };
        Statement { engine, unbound }
    }

    /// The workers hear of it after the commit.
    pub fn wake_jobs(&mut self) {
        self.woke_jobs = true;
    }

    /// Whether the transaction woke jobs.
    pub(super) async fn commit(self) -> Result<bool> {
        match self.connection {
            Connection::Sqlite(tx) => tx.commit().await?,
            Connection::Postgres(tx) => tx.commit().await?,
        }
        Ok(self.woke_jobs)
    }
}
/// A statement on its way to the engine.
#[must_use = "a statement does nothing until it is asked for its result"]
pub struct Statement<'t> {
    engine: Engine<'t>,
    unbound: usize,
}

enum Engine<'t> {
    Sqlite(&'t mut sqlx::SqliteConnection, sqlx::query::Query<'t, Sqlite, SqliteArguments>),
    Postgres(&'t mut sqlx::PgConnection, sqlx::query::Query<'t, Postgres, PgArguments>),
}

/// A value that both engines take as a parameter.
pub trait Param<'t>:
    Type<Sqlite> + Type<Postgres> + Encode<'t, Sqlite> + Encode<'t, Postgres>
{
}
impl<'t, T> Param<'t> for T where
    T: Type<Sqlite> + Type<Postgres> + Encode<'t, Sqlite> + Encode<'t, Postgres>
{
}

/// What both engines can make of a row: a tuple or any `#[derive(sqlx::FromRow)]`.
pub trait Record: for<'r> FromRow<'r, SqliteRow> + for<'r> FromRow<'r, PgRow> {}
impl<T> Record for T where T: for<'r> FromRow<'r, SqliteRow> + for<'r> FromRow<'r, PgRow> {}

impl<'t> Statement<'t> {
    pub fn bind(self, value: impl Param<'t>) -> Self {
        let engine = match self.engine {
            Engine::Sqlite(conn, query) => Engine::Sqlite(conn, query.bind(value)),
            Engine::Postgres(conn, query) => Engine::Postgres(conn, query.bind(value)),
        };
        let unbound = self.unbound.checked_sub(1).expect("more values than parameters");
        Statement { engine, unbound }
    }

    pub async fn one<T: Record>(self) -> Result<T> {
        self.optional().await?.ok_or(sqlx::Error::RowNotFound)
    }

    pub async fn optional<T: Record>(self) -> Result<Option<T>> {
        match self.bound() {
            Engine::Sqlite(conn, query) => {
                query.fetch_optional(conn).await?.as_ref().map(T::from_row).transpose()
            }
            Engine::Postgres(conn, query) => {
                query.fetch_optional(conn).await?.as_ref().map(T::from_row).transpose()
            }
        }
    }

    pub async fn all<T: Record>(self) -> Result<Vec<T>> {
        match self.bound() {
            Engine::Sqlite(conn, query) => {
                query.fetch_all(conn).await?.iter().map(T::from_row).collect()
            }
            Engine::Postgres(conn, query) => {
                query.fetch_all(conn).await?.iter().map(T::from_row).collect()
            }
        }
    }

    /// Runs the statement; the answer is how many rows it touched.
    pub async fn run(self) -> Result<u64> {
        match self.bound() {
            Engine::Sqlite(conn, query) => Ok(query.execute(conn).await?.rows_affected()),
            Engine::Postgres(conn, query) => Ok(query.execute(conn).await?.rows_affected()),
        }
    }

    /// SQLite would take a forgotten parameter for NULL; we would rather not run at all.
    fn bound(self) -> Engine<'t> {
        assert_eq!(self.unbound, 0, "fewer values than parameters");
        self.engine
    }
}

fn without_row_locks(sql: &'static str) -> SqlStr {
    if !sql.contains(" FOR UPDATE") {
        return sql.into_sql_str();
    }
    let sql = sql.replace(" FOR UPDATE SKIP LOCKED", "").replace(" FOR UPDATE", "");
    AssertSqlSafe(sql).into_sql_str() // safe: it only lost words
}

/// The highest `$n` of a statement.
fn parameters(sql: &str) -> usize {
    let digits = |s: &str| s.bytes().take_while(u8::is_ascii_digit).count();
    let numbers = sql.split('$').skip(1).filter_map(|s| s[..digits(s)].parse().ok());
    numbers.max().unwrap_or(0)
}
