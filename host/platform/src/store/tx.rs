//! A transaction and its statements, for either engine.

use std::time::Duration;

use sqlx::{
    Arguments, AssertSqlSafe, Encode, Executor, FromRow, SqlSafeStr, SqlStr, Type,
    postgres::{PgArguments, PgRow, Postgres},
};

use super::{
    DynamicStatement, Error, Result, SqlValue,
    pool::PooledConnection,
    postgres::PostgresManager,
    sqlite::{
        SqliteManager,
        local::LocalConnection,
        types::{Local, LocalArguments, LocalRow},
    },
};
use crate::values::listing::{ListPage, PageRequest};

/// Timeout for restoring a connection that was left during a statement or transaction.
const CLEAN_UP_TIMEOUT: Duration = Duration::from_secs(10);

/// SQLite VM steps of a read on the caller's thread: about a millisecond.
const MAX_INLINE_STEPS: i64 = 30_000;

const UNTIL_THE_END: &str = "the connection is taken only at the end";

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    Write,
    /// One snapshot, read-only.
    Read,
    /// One `SELECT`, without an explicit transaction.
    Select,
}

/// A transaction: the only access to the data.
pub struct Tx {
    /// `None` when the transaction has ended.
    connection: Option<Connection>,
    mode: Mode,
    pub(super) state: TxState,
    pub(super) wakes_workers: bool,
}

/// The state of a transaction.
#[derive(Default)]
pub(super) struct TxState {
    statements: usize,
    is_running: bool,
    /// The error of a statement. No other may run after it: PostgreSQL refuses them, and SQLite may
    /// have ended the transaction.
    pub(super) failed: Option<Error>,
}

pub(super) enum Connection {
    Sqlite(PooledConnection<SqliteManager>),
    Postgres(PooledConnection<PostgresManager>),
}

impl Connection {
    pub(super) async fn execute(&mut self, sql: &'static str) -> sqlx::Result<()> {
        match self {
            Connection::Sqlite(sqlite) => sqlite.execute(sql),
            // Unprepared: one message each way.
            Connection::Postgres(postgres) => (&mut **postgres).execute(sql).await.map(drop),
        }
    }

    /// Interrupts the statements on SQLite that are too long for the caller's thread.
    pub(super) fn limit_steps(&mut self) {
        if let Connection::Sqlite(sqlite) = self {
            sqlite.alarm.limit_steps(MAX_INLINE_STEPS);
        }
    }

    /// Removes the connection from the pool, whatever it is doing.
    fn discard(self) {
        match self {
            Connection::Sqlite(sqlite) => drop(PooledConnection::take(sqlite)),
            Connection::Postgres(postgres) => drop(PooledConnection::take(postgres)),
        }
    }

    /// Ends what is in progress: a statement, and a transaction if `mode` has one.
    fn clean_up(self, mode: Mode) {
        let sql = if mode == Mode::Select { "SELECT 1" } else { "ROLLBACK" };
        match self {
            // No statement outlives its call.
            Connection::Sqlite(mut sqlite) => {
                sqlite.alarm.clear();
                if sqlite.execute(sql).is_err() {
                    drop(PooledConnection::take(sqlite));
                }
            }
            postgres @ Connection::Postgres(_) => drop(tokio::spawn(postgres.end(sql))),
        }
    }

    async fn end(mut self, sql: &'static str) {
        let cleaned = tokio::time::timeout(CLEAN_UP_TIMEOUT, self.execute(sql)).await;
        if !matches!(cleaned, Ok(Ok(()))) {
            self.discard();
        }
    }
}

impl Tx {
    pub(super) fn new(connection: Connection, mode: Mode) -> Tx {
        Tx { connection: Some(connection), mode, state: TxState::default(), wakes_workers: false }
    }

    pub(super) fn connection(&mut self) -> &mut Connection {
        self.connection.as_mut().expect(UNTIL_THE_END)
    }

    /// Returns whether a statement on SQLite took more than [`MAX_INLINE_STEPS`].
    pub(super) fn is_long(&mut self) -> bool {
        match self.connection() {
            Connection::Sqlite(sqlite) => sqlite.alarm.is_exhausted(),
            Connection::Postgres(_) => false,
        }
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
        self.state.record_result(begun)
    }

    /// Starts a statement: bind its parameters, then request its result.
    pub fn sql(&mut self, sql: &'static str) -> Statement<'_> {
        self.statement(sql.into_sql_str())
    }

    fn is_sqlite(&self) -> bool {
        matches!(self.connection, Some(Connection::Sqlite(_)))
    }

    /// Like [`Tx::sql`], for an assembled statement, whose parameters are bound.
    pub fn dynamic(&mut self, sql: &DynamicStatement) -> Statement<'_> {
        // Safe: its text consists of pieces of this program.
        let statement = self.statement(AssertSqlSafe(sql.text.clone()).into_sql_str());
        sql.values.iter().fold(statement, |statement, value| match value {
            SqlValue::Text(text) => statement.bind(text.clone()),
            SqlValue::Integer(number) => statement.bind(*number),
            SqlValue::Boolean(flag) => statement.bind(*flag),
        })
    }

    /// Returns a page of a list. `filter` completes a `SELECT` with table and conditions.
    pub async fn list<T: Record>(
        &mut self,
        filter: impl Fn(&'static str) -> DynamicStatement,
        select: &'static str,
        order_by: &'static str,
        page: PageRequest,
    ) -> Result<ListPage<T>> {
        let total = self.dynamic(&filter("SELECT COUNT(*)")).value().await?;
        let sql = filter(select).append(order_by).append(" LIMIT ").bind(page.limit);
        let items = self.dynamic(&sql.append(" OFFSET ").bind(page.offset())).all().await?;
        Ok(page.to_list_page(total, items))
    }

    /// Returns the engine's query plan for a statement, one line per step.
    pub async fn explain(&mut self, sql: &DynamicStatement) -> Result<Vec<String>> {
        let is_sqlite = self.is_sqlite();
        let explain = if is_sqlite { "EXPLAIN QUERY PLAN " } else { "EXPLAIN " };
        let sql =
            DynamicStatement { text: format!("{explain}{}", sql.text), values: sql.values.clone() };
        if is_sqlite {
            let steps: Vec<(i64, i64, i64, String)> = self.dynamic(&sql).all().await?;
            return Ok(steps.into_iter().map(|(.., step)| step).collect());
        }
        self.dynamic(&sql).values().await
    }

    fn statement(&mut self, sql: SqlStr) -> Statement<'_> {
        let is_select = sql.as_str().trim_start().starts_with("SELECT");
        let first_select = self.state.statements == 0 && is_select;
        assert!(self.mode != Mode::Select || first_select, "Store::select takes one SELECT");
        self.state.statements += 1;
        let unbound = count_parameters(sql.as_str());
        let engine = match self.connection.as_mut().expect(UNTIL_THE_END) {
            Connection::Sqlite(tx) => Engine::Sqlite(tx, sql, LocalArguments::default()),
            Connection::Postgres(tx) => Engine::Postgres(tx, sqlx::query(sql)),
        };
        Statement { engine, state: &mut self.state, unbound }
    }

    /// Wakes the workers after the commit.
    pub fn wake_workers(&mut self) {
        self.wakes_workers = true;
    }

    /// Notifies hosts that [`Store::listen`](super::Store::listen) on this channel, after the
    /// commit. No effect on SQLite: hosts on one file must poll.
    pub async fn notify(&mut self, channel: &'static str) -> Result<()> {
        if self.is_sqlite() {
            return Ok(());
        }
        self.sql("SELECT pg_notify($1, '')").bind(channel).execute().await
    }

    pub(super) async fn commit(mut self) -> Result<()> {
        if self.state.failed.is_some() {
            return Err(Error::Aborted);
        }
        let done = self.connection().execute("COMMIT").await.map_err(Error::from_commit);
        match self.connection.take() {
            Some(connection) if done.is_err() => connection.discard(),
            returned => drop(returned),
        }
        done
    }

    /// Removes the connection from the pool, with all that is in progress.
    pub(super) fn discard(mut self) {
        if let Some(connection) = self.connection.take() {
            connection.discard();
        }
    }
}

impl Drop for Tx {
    /// Rolls back what was not committed; on PostgreSQL, in the background.
    fn drop(&mut self) {
        let is_clean =
            self.mode == Mode::Select && !self.state.is_running && self.state.failed.is_none();
        if let Some(connection) = self.connection.take().filter(|_| !is_clean) {
            connection.clean_up(self.mode);
        }
    }
}

/// A statement that has not run yet.
#[must_use = "a statement does nothing until its result is requested"]
pub struct Statement<'t> {
    engine: Engine<'t>,
    state: &'t mut TxState,
    unbound: usize,
}

enum Engine<'t> {
    Sqlite(&'t mut LocalConnection, SqlStr, LocalArguments),
    Postgres(&'t mut sqlx::PgConnection, sqlx::query::Query<'t, Postgres, PgArguments>),
}

/// A value that both engines accept as a parameter.
pub trait Param<'t>:
    Type<Local> + Type<Postgres> + Encode<'t, Local> + Encode<'t, Postgres>
{
}
impl<'t, T> Param<'t> for T where
    T: Type<Local> + Type<Postgres> + Encode<'t, Local> + Encode<'t, Postgres>
{
}

/// A row type that both engines can read: a tuple or any `#[derive(sqlx::FromRow)]`.
pub trait Record: for<'r> FromRow<'r, LocalRow> + for<'r> FromRow<'r, PgRow> {}
impl<T> Record for T where T: for<'r> FromRow<'r, LocalRow> + for<'r> FromRow<'r, PgRow> {}

/// The parameters of a statement, in order: see [`params!`](super::params).
pub trait Params<'t> {
    fn bind_to(self, statement: Statement<'t>) -> Statement<'t>;
}

impl<'t> Params<'t> for () {
    fn bind_to(self, statement: Statement<'t>) -> Statement<'t> {
        statement
    }
}

impl<'t, Before: Params<'t>, Last: Param<'t>> Params<'t> for (Before, Last) {
    fn bind_to(self, statement: Statement<'t>) -> Statement<'t> {
        self.0.bind_to(statement).bind(self.1)
    }
}

/// Lists the parameters of a statement for [`Statement::params`].
#[macro_export]
#[doc(hidden)]
macro_rules! __params {
    (@ $before:expr $(,)?) => { $before };
    (@ $before:expr, $value:expr $(, $rest:expr)* $(,)?) => {
        $crate::store::params!(@ ($before, $value) $(, $rest)*)
    };
    ($($value:expr),* $(,)?) => { $crate::store::params!(@ () $(, $value)*) };
}

impl TxState {
    fn record_result<T>(&mut self, result: sqlx::Result<T>) -> Result<T> {
        self.is_running = false;
        result.map_err(|error| self.failed.insert(error.into()).clone())
    }
}

impl<'t> Statement<'t> {
    pub fn bind(self, value: impl Param<'t>) -> Self {
        let engine = match self.engine {
            Engine::Sqlite(connection, sql, mut values) => {
                if let Err(error) = values.add(value) {
                    self.state.failed = Some(sqlx::Error::Encode(error).into());
                }
                Engine::Sqlite(connection, sql, values)
            }
            Engine::Postgres(conn, query) => Engine::Postgres(conn, query.bind(value)),
        };
        let unbound = self.unbound.checked_sub(1).expect("more values than parameters");
        Statement { engine, unbound, ..self }
    }

    /// Binds several parameters: `params(params![a, b])`.
    pub fn params(self, params: impl Params<'t>) -> Self {
        params.bind_to(self)
    }

    pub async fn one<T: Record>(self) -> Result<T> {
        self.optional().await?.ok_or_else(|| sqlx::Error::RowNotFound.into())
    }

    pub async fn optional<T: Record>(self) -> Result<Option<T>> {
        let (engine, state) = self.require_all_bound()?;
        Ok(match engine {
            Engine::Sqlite(connection, sql, values) => {
                let rows = state.record_result(connection.rows(sql.as_str(), values, 1))?;
                rows.first().map(T::from_row).transpose()?
            }
            Engine::Postgres(connection, query) => {
                let row = state.record_result(query.fetch_optional(connection).await)?;
                row.as_ref().map(T::from_row).transpose()?
            }
        })
    }

    pub async fn all<T: Record>(self) -> Result<Vec<T>> {
        let (engine, state) = self.require_all_bound()?;
        let records: sqlx::Result<_> = match engine {
            Engine::Sqlite(connection, sql, values) => {
                let rows = connection.rows(sql.as_str(), values, usize::MAX);
                state.record_result(rows)?.iter().map(T::from_row).collect()
            }
            Engine::Postgres(connection, query) => {
                let rows = state.record_result(query.fetch_all(connection).await)?;
                rows.iter().map(T::from_row).collect()
            }
        };
        Ok(records?)
    }

    /// Like [`Statement::one`], for rows of one column.
    pub async fn value<T>(self) -> Result<T>
    where
        (T,): Record,
    {
        self.one().await.map(|(value,)| value)
    }

    /// Like [`Statement::optional`], for rows of one column.
    pub async fn optional_value<T>(self) -> Result<Option<T>>
    where
        (T,): Record,
    {
        Ok(self.optional().await?.map(|(value,)| value))
    }

    /// Like [`Statement::all`], for rows of one column.
    pub async fn values<T>(self) -> Result<Vec<T>>
    where
        (T,): Record,
    {
        Ok(self.all().await?.into_iter().map(|(value,)| value).collect())
    }

    pub async fn execute(self) -> Result<()> {
        self.run().await.map(drop)
    }

    /// Runs the statement. Returns the number of affected rows.
    pub async fn run(self) -> Result<u64> {
        let (engine, state) = self.require_all_bound()?;
        match engine {
            Engine::Sqlite(connection, sql, values) => {
                state.record_result(connection.run(sql.as_str(), values))
            }
            Engine::Postgres(connection, query) => {
                Ok(state.record_result(query.execute(connection).await)?.rows_affected())
            }
        }
    }

    /// Runs the statement. Returns whether it affected one row.
    pub async fn affects_one(self) -> Result<bool> {
        self.run().await.map(|rows| rows == 1)
    }

    /// Requires that all parameters are bound: SQLite would read a missing one as NULL.
    fn require_all_bound(self) -> Result<(Engine<'t>, &'t mut TxState)> {
        assert_eq!(self.unbound, 0, "fewer values than parameters");
        if self.state.failed.is_some() {
            return Err(Error::Aborted);
        }
        self.state.is_running = true;
        Ok((self.engine, self.state))
    }
}

/// Returns the highest `$n` of a statement.
fn count_parameters(sql: &str) -> usize {
    let digits = |s: &str| s.bytes().take_while(u8::is_ascii_digit).count();
    let numbers = sql.split('$').skip(1).filter_map(|s| s[..digits(s)].parse().ok());
    numbers.max().unwrap_or(0)
}
