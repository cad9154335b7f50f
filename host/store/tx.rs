//! A transaction and its statements, whichever engine they are for.

use std::time::Duration;

use sqlx::{
    AssertSqlSafe, Connection as _, Encode, Executor, FromRow, SqlSafeStr, SqlStr, Type,
    postgres::{PgArguments, PgRow, Postgres},
    sqlite::{Sqlite, SqliteArguments, SqliteRow},
};

use super::{Assembled, Error, Result, Value, pool::Pooled, postgres::Sessions, sqlite::Handles};

/// How long a connection that was left in the middle of something may take to be fit again.
const CLEAN_UP: Duration = Duration::from_secs(10);

/// What a transaction is for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    Write,
    /// One snapshot, nothing is changed.
    Read,
    /// One `SELECT`, which needs no transaction around it.
    Select,
}

/// A transaction: the only way to the data.
pub struct Tx {
    /// Taken when the transaction ends.
    connection: Option<Connection>,
    mode: Mode,
    fate: Fate,
    woke_jobs: bool,
}

/// What has become of a transaction so far.
#[derive(Default)]
struct Fate {
    statements: usize,
    under_way: bool,
    /// The error of a statement, after which no other may run: PostgreSQL refuses them, and SQLite may have ended the transaction.
    failed: Option<Error>,
}

pub(super) enum Connection {
    Sqlite(Pooled<Handles>),
    Postgres(Pooled<Sessions>),
}

impl Connection {
    pub(super) async fn execute(&mut self, sql: &'static str) -> sqlx::Result<()> {
        match self {
            Connection::Sqlite(sqlite) => {
                (&mut sqlite.connection).execute(sqlx::query(sql)).await.map(drop)
            }
            // As text, without preparing it: one message there, one back.
            Connection::Postgres(postgres) => (&mut **postgres).execute(sql).await.map(drop),
        }
    }

    async fn ping(&mut self) -> sqlx::Result<()> {
        match self {
            Connection::Sqlite(sqlite) => sqlite.connection.ping().await,
            Connection::Postgres(postgres) => postgres.ping().await,
        }
    }

    /// Not used again, whatever is under way in it.
    fn discard(self) {
        match self {
            Connection::Sqlite(sqlite) => drop(Pooled::take(sqlite)),
            Connection::Postgres(postgres) => drop(Pooled::take(postgres)),
        }
    }

    async fn clean_up(mut self, mode: Mode) {
        let cleaned = tokio::time::timeout(CLEAN_UP, async {
            match mode {
                Mode::Select => self.ping().await,
                Mode::Write | Mode::Read => self.execute("ROLLBACK").await,
            }
        });
        if !matches!(cleaned.await, Ok(Ok(()))) {
            self.discard();
        }
    }
}

impl Tx {
    pub(super) fn new(connection: Connection, mode: Mode) -> Tx {
        Tx { connection: Some(connection), mode, fate: Fate::default(), woke_jobs: false }
    }

    pub(super) fn connection(&mut self) -> &mut Connection {
        self.connection.as_mut().expect("taken at the end only")
    }

    pub(super) async fn begin(&mut self) -> Result<()> {
        let mode = self.mode;
        let connection = self.connection();
        let begin = match (mode, &connection) {
            (Mode::Select, _) => return Ok(()),
            (Mode::Read, Connection::Sqlite(_)) => "BEGIN",
            (Mode::Read, Connection::Postgres(_)) => {
                "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
            }
            (Mode::Write, Connection::Sqlite(_)) => "BEGIN IMMEDIATE",
            (Mode::Write, Connection::Postgres(_)) => "BEGIN",
        };
        let begun = connection.execute(begin).await;
        self.fate.note(begun)
    }

    /// Starts a statement; bind its parameters, then ask for what it returns.
    pub fn sql(&mut self, sql: &'static str) -> Statement<'_> {
        let text = if self.is_sqlite() { without_row_locks(sql) } else { None };
        self.statement(text.unwrap_or_else(|| sql.into_sql_str()))
    }

    fn is_sqlite(&self) -> bool {
        matches!(self.connection, Some(Connection::Sqlite(_)))
    }

    /// The same of a statement that was put together; its parameters are bound.
    pub fn assembled(&mut self, sql: &Assembled) -> Statement<'_> {
        let text = if self.is_sqlite() { without_row_locks(&sql.text) } else { None };
        // Safe: its text is made of pieces of this program.
        let text = text.unwrap_or_else(|| AssertSqlSafe(sql.text.clone()).into_sql_str());
        let statement = self.statement(text);
        sql.values.iter().fold(statement, |statement, value| match value {
            Value::Text(text) => statement.bind(text.clone()),
            Value::Whole(number) => statement.bind(*number),
            Value::Flag(flag) => statement.bind(*flag),
        })
    }

    /// How the engine would go about a statement, in its own words, a line for each step.
    pub async fn explain(&mut self, sql: &Assembled) -> Result<Vec<String>> {
        let is_sqlite = self.is_sqlite();
        let explain = if is_sqlite { "EXPLAIN QUERY PLAN " } else { "EXPLAIN " };
        let sql = Assembled { text: format!("{explain}{}", sql.text), values: sql.values.clone() };
        if is_sqlite {
            let steps: Vec<(i64, i64, i64, String)> = self.assembled(&sql).all().await?;
            return Ok(steps.into_iter().map(|(.., step)| step).collect());
        }
        let steps: Vec<(String,)> = self.assembled(&sql).all().await?;
        Ok(steps.into_iter().map(|(step,)| step).collect())
    }

    fn statement(&mut self, sql: SqlStr) -> Statement<'_> {
        let is_select = sql.as_str().trim_start().starts_with("SELECT");
        let first_select = self.fate.statements == 0 && is_select;
        assert!(self.mode != Mode::Select || first_select, "Store::select takes one SELECT");
        self.fate.statements += 1;
        let unbound = parameters(sql.as_str());
        let engine = match self.connection.as_mut().expect("taken at the end only") {
            Connection::Sqlite(tx) => Engine::Sqlite(&mut tx.connection, sqlx::query(sql)),
            Connection::Postgres(tx) => Engine::Postgres(tx, sqlx::query(sql)),
        };
        Statement { engine, fate: &mut self.fate, unbound }
    }

    /// The workers hear of it after the commit.
    pub fn wake_jobs(&mut self) {
        self.woke_jobs = true;
    }

    /// Hosts that [`Store::listen`](super::Store::listen) on this channel hear of it after the commit. On SQLite nobody does: hosts
    /// on one file have to look by themselves.
    pub async fn announce(&mut self, channel: &'static str) -> Result<()> {
        if self.is_sqlite() {
            return Ok(());
        }
        self.sql("SELECT pg_notify($1, '')").bind(channel).run().await.map(drop)
    }

    pub(super) fn woke_jobs(&self) -> bool {
        self.woke_jobs
    }

    /// The error of a statement, unless `work` failed with it.
    pub(super) fn failed(&self) -> Option<&Error> {
        self.fate.failed.as_ref()
    }

    /// After a rollback to where no statement had failed.
    pub(super) fn forget_failure(&mut self) {
        self.fate.failed = None;
    }

    pub(super) async fn commit(mut self) -> Result<()> {
        if self.fate.failed.is_some() {
            return Err(Error::Aborted);
        }
        let done = self.connection().execute("COMMIT").await.map_err(Error::of_commit);
        let connection = self.connection.take().expect("taken at the end only");
        if done.is_err() {
            connection.discard();
        }
        done
    }

    /// Gives the connection up with all that is under way in it.
    pub(super) fn discard(mut self) {
        if let Some(connection) = self.connection.take() {
            connection.discard();
        }
    }
}

impl Drop for Tx {
    /// Nothing remains of what was not committed, and nobody waits for that.
    fn drop(&mut self) {
        let is_clean =
            self.mode == Mode::Select && !self.fate.under_way && self.fate.failed.is_none();
        if let Some(connection) = self.connection.take().filter(|_| !is_clean) {
            tokio::spawn(connection.clean_up(self.mode));
        }
    }
}

/// A statement on its way to the engine.
#[must_use = "a statement does nothing until it is asked for its result"]
pub struct Statement<'t> {
    engine: Engine<'t>,
    fate: &'t mut Fate,
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

impl Fate {
    fn note<T>(&mut self, answer: sqlx::Result<T>) -> Result<T> {
        self.under_way = false;
        answer.map_err(|error| self.failed.insert(error.into()).clone())
    }
}

impl<'t> Statement<'t> {
    pub fn bind(self, value: impl Param<'t>) -> Self {
        let engine = match self.engine {
            Engine::Sqlite(conn, query) => Engine::Sqlite(conn, query.bind(value)),
            Engine::Postgres(conn, query) => Engine::Postgres(conn, query.bind(value)),
        };
        let unbound = self.unbound.checked_sub(1).expect("more values than parameters");
        Statement { engine, unbound, ..self }
    }

    pub async fn one<T: Record>(self) -> Result<T> {
        self.optional().await?.ok_or_else(|| sqlx::Error::RowNotFound.into())
    }

    pub async fn optional<T: Record>(self) -> Result<Option<T>> {
        let (engine, fate) = self.bound()?;
        let record = match engine {
            Engine::Sqlite(conn, query) => {
                fate.note(query.fetch_optional(conn).await)?.as_ref().map(T::from_row)
            }
            Engine::Postgres(conn, query) => {
                fate.note(query.fetch_optional(conn).await)?.as_ref().map(T::from_row)
            }
        };
        Ok(record.transpose()?)
    }

    pub async fn all<T: Record>(self) -> Result<Vec<T>> {
        let (engine, fate) = self.bound()?;
        let records: sqlx::Result<Vec<T>> = match engine {
            Engine::Sqlite(conn, query) => {
                fate.note(query.fetch_all(conn).await)?.iter().map(T::from_row).collect()
            }
            Engine::Postgres(conn, query) => {
                fate.note(query.fetch_all(conn).await)?.iter().map(T::from_row).collect()
            }
        };
        Ok(records?)
    }

    /// Runs the statement; the answer is how many rows it touched.
    pub async fn run(self) -> Result<u64> {
        let (engine, fate) = self.bound()?;
        match engine {
            Engine::Sqlite(conn, query) => {
                Ok(fate.note(query.execute(conn).await)?.rows_affected())
            }
            Engine::Postgres(conn, query) => {
                Ok(fate.note(query.execute(conn).await)?.rows_affected())
            }
        }
    }

    /// SQLite would take a forgotten parameter for NULL; we would rather not run at all.
    fn bound(self) -> Result<(Engine<'t>, &'t mut Fate)> {
        assert_eq!(self.unbound, 0, "fewer values than parameters");
        if self.fate.failed.is_some() {
            return Err(Error::Aborted);
        }
        self.fate.under_way = true;
        Ok((self.engine, self.fate))
    }
}

/// `None` when it has none.
fn without_row_locks(sql: &str) -> Option<SqlStr> {
    let locks = sql.contains(" FOR UPDATE");
    let without = || sql.replace(" FOR UPDATE SKIP LOCKED", "").replace(" FOR UPDATE", "");
    // Safe: it only lost words.
    locks.then(|| AssertSqlSafe(without()).into_sql_str())
}

/// The highest `$n` of a statement.
fn parameters(sql: &str) -> usize {
    let digits = |s: &str| s.bytes().take_while(u8::is_ascii_digit).count();
    let numbers = sql.split('$').skip(1).filter_map(|s| s[..digits(s)].parse().ok());
    numbers.max().unwrap_or(0)
}
