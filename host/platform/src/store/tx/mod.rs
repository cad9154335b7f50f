//! A transaction, for either engine.

mod deferred;
mod insert;
mod list;
mod state;
mod statement;

use std::time::Duration;

use sqlx::{AssertSqlSafe, Executor, SqlSafeStr, SqlStr};

pub use self::{
    deferred::Deferred,
    list::{ListPosition, ListTotal},
    statement::{Bind, Param, Params, Record, Statement},
};
use self::{
    state::TxState,
    statement::{Engine, count_parameters},
};
use super::{
    DynamicStatement, Error, Result, SqlValue,
    pool::PooledConnection,
    postgres::{PostgresManager, batch::Batch},
    sqlite::{SqliteManager, types::LocalArguments},
};

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

/// Texts in a `SELECT` that locks rows or writes.
const EFFECTS: [&str; 6] = [
    "FOR UPDATE", "FOR SHARE", "pg_notify(", "fold_ledger_account(", "fold_list_deltas(",
    "analyze_grown_table(",
];

/// Returns whether a statement neither locks nor writes anything.
pub fn only_reads(sql: &str) -> bool {
    sql.trim_start().starts_with("SELECT") && !EFFECTS.iter().any(|effect| sql.contains(effect))
}

/// A transaction: the only access to the data.
pub struct Tx {
    /// `None` when the transaction has ended.
    connection: Option<Connection>,
    mode: Mode,
    pub(super) state: TxState,
    pub(super) wakes_workers: bool,
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
        let begin = match (mode, self.connection()) {
            (Mode::Select, _) => return Ok(()),
            (Mode::Read, Connection::Sqlite(_)) => "BEGIN",
            (Mode::Read, Connection::Postgres(_)) => {
                "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
            }
            (Mode::Write, Connection::Sqlite(_)) => "BEGIN IMMEDIATE",
            // With the first statement that needs it: see `Tx::statement`.
            (Mode::Write, Connection::Postgres(_)) => return Ok(()),
        };
        self.state.begun = true; // even if this future is dropped before the response
        self.state.round_trips += 1;
        let begun = self.connection().execute(begin).await;
        self.state.record_result(begun)
    }

    /// Starts a statement: bind its parameters, then request its result.
    pub fn sql(&mut self, sql: &'static str) -> Statement<'_> {
        self.statement(sql.into_sql_str())
    }

    fn is_sqlite(&self) -> bool {
        matches!(self.connection, Some(Connection::Sqlite(_)))
    }

    /// Starts an `INSERT`, `UPDATE` or `DELETE` without `RETURNING` whose effect is not needed
    /// before the next [`Tx::sql`] or the commit. PostgreSQL gets successive ones as one statement,
    /// which is a transaction of its own if nothing else runs: they must not depend on each other's
    /// effects, those of [`Deferred::execute`] run last, and an error may be that of the commit. On
    /// SQLite a deferred statement runs at once.
    pub fn defer(&mut self, sql: &'static str) -> Deferred<'_> {
        let waits = self.state.deferred.last().is_some_and(|batch| batch.excludes(sql));
        self.defer_after(waits, sql)
    }

    /// Like [`Tx::defer`], for a statement that affects other rows than earlier ones with the same
    /// text.
    pub fn defer_distinct(&mut self, sql: &'static str) -> Deferred<'_> {
        self.defer_after(false, sql)
    }

    fn defer_after(&mut self, waits: bool, sql: &'static str) -> Deferred<'_> {
        if self.is_sqlite() {
            return Deferred::now(self.sql(sql));
        }
        assert!(self.mode == Mode::Write, "a read defers nothing");
        if waits || self.state.deferred.is_empty() {
            self.state.deferred.push(Batch::default());
        }
        Deferred::later(&mut self.state, sql)
    }

    /// Like [`Tx::sql`], for an assembled statement, whose parameters are bound.
    pub fn dynamic(&mut self, sql: &DynamicStatement) -> Statement<'_> {
        // Safe: its text consists of pieces of this program.
        let statement = self.statement(AssertSqlSafe(sql.text.clone()).into_sql_str());
        sql.values.iter().fold(statement, |statement, value| match value {
            SqlValue::Text(text) => statement.bind(text.clone()),
            SqlValue::NullableText(text) => statement.bind(text.clone()),
            SqlValue::Integer(number) => statement.bind(*number),
            SqlValue::Boolean(flag) => statement.bind(*flag),
        })
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
        // PostgreSQL gives each statement its own snapshot, in a transaction (at READ COMMITTED) as
        // outside. A transaction that only reads, then writes what it deferred, needs no `BEGIN`.
        self.state.needs_begin |= self.mode == Mode::Write && !only_reads(sql.as_str());
        let unbound = count_parameters(sql.as_str());
        let engine = match self.connection.as_mut().expect(UNTIL_THE_END) {
            Connection::Sqlite(tx) => Engine::Sqlite(tx, sql, LocalArguments::default()),
            Connection::Postgres(tx) => Engine::Postgres(tx, sqlx::query(sql)),
        };
        Statement { engine, state: &mut self.state, unbound }
    }

    pub(super) fn writes(&self) -> bool {
        self.mode == Mode::Write
    }

    /// Wakes the workers after the commit.
    pub fn wake_workers(&mut self) {
        self.wakes_workers = true;
    }

    /// Notifies hosts that [`Store::listen`](crate::store::Store::listen) on this channel, after
    /// the commit. No effect on SQLite: hosts on one file must poll.
    pub async fn notify(&mut self, channel: &'static str) -> Result<()> {
        if self.is_sqlite() {
            return Ok(());
        }
        self.sql("SELECT pg_notify($1, '')").bind(channel).execute().await
    }

    pub(super) async fn commit(&mut self) -> Result<()> {
        if self.state.failed.is_some() {
            return Err(Error::Aborted);
        }
        let done = self.send_commit().await;
        match self.connection.take() {
            Some(connection) if done.as_ref().is_err_and(Error::is_unavailable) => {
                connection.discard();
            }
            // To be rolled back.
            returned if done.is_err() => self.connection = returned,
            returned => drop(returned),
        }
        done
    }

    async fn send_commit(&mut self) -> Result<()> {
        let Tx { connection, state, .. } = self;
        let connection = connection.as_mut().expect(UNTIL_THE_END);
        if let Connection::Postgres(postgres) = connection {
            if !state.begun && state.deferred.len() <= 1 {
                let Some(batch) = state.deferred.pop() else { return Ok(()) };
                state.round_trips += 1;
                state.is_running = true;
                let done = batch.run(postgres).await;
                state.is_running = false;
                return done.map_err(Error::from_commit);
            }
            state.flush(postgres).await?;
            state.round_trips += 1;
        }
        connection.execute("COMMIT").await.map_err(Error::from_commit)
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
        let has_begun = self.mode != Mode::Select && (self.state.begun || self.is_sqlite());
        let is_clean = !has_begun && !self.state.is_running && self.state.failed.is_none();
        if let Some(connection) = self.connection.take().filter(|_| !is_clean) {
            connection.clean_up(self.mode);
        }
    }
}
