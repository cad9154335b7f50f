//! A connection to a SQLite file whose statements run on the caller's thread.
//!
//! A statement has ended when its call returns, so no other thread is woken. An [`Alarm`] limits
//! its time.

use std::{
    borrow::Cow,
    collections::HashMap,
    error::Error as StdError,
    path::Path,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicI64, AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use rusqlite::{Connection, OpenFlags, config::DbConfig, ffi, types::Value};
use sqlx::error::{DatabaseError, ErrorKind};

use super::types::{Columns, LocalArguments, LocalRow};

/// SQLite VM steps between checks of the deadline: a fraction of a millisecond.
const STEPS_PER_CHECK: i32 = 10_000;
/// Sizes of the page caches. Pages that are not in the cache are read from the file. SQLite's
/// default of 2 MiB misses most pages of a large database.
const WRITER_CACHE_KIB: i64 = 64 << 10;
const READER_CACHE_KIB: i64 = 8 << 10;
/// Number of prepared statements that a connection keeps.
const MAX_PREPARED: usize = 500;

pub struct LocalConnection {
    sqlite: Connection,
    prepared: HashMap<String, Prepared>,
    pub alarm: Alarm,
}

/// A statement in SQLite's form.
struct Prepared {
    sql: String,
    /// Known after its first run.
    columns: Option<Arc<Columns>>,
}

impl LocalConnection {
    pub fn open(file: &Path, is_writer: bool, busy_timeout: Duration) -> sqlx::Result<Self> {
        let access = match is_writer {
            true => OpenFlags::SQLITE_OPEN_READ_WRITE,
            false => OpenFlags::SQLITE_OPEN_READ_ONLY,
        };
        let opened = Connection::open_with_flags(file, access | OpenFlags::SQLITE_OPEN_NO_MUTEX);
        let sqlite = opened.map_err(to_sqlx)?;
        let alarm = Alarm::default();
        let configure = || {
            sqlite.busy_timeout(busy_timeout)?;
            // Otherwise plans depend on bound values, and SQLite prepares a statement with
            // `LIMIT $1` again for each run.
            sqlite.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
            sqlite.pragma_update(None, "synchronous", "FULL")?; // commits survive a power failure
            sqlite.pragma_update(None, "foreign_keys", true)?;
            // Else INSERT OR REPLACE skips delete triggers.
            sqlite.pragma_update(None, "recursive_triggers", true)?;
            let cache_kib = if is_writer { WRITER_CACHE_KIB } else { READER_CACHE_KIB };
            sqlite.pragma_update(None, "cache_size", -cache_kib)?; // negative: in KiB, not in pages
            if is_writer {
                // Savepoints and triggers copy pages, else to a file: a write takes twice as long.
                sqlite.pragma_update(None, "temp_store", "MEMORY")?;
            }
            sqlite.set_prepared_statement_cache_capacity(MAX_PREPARED);
            let alarm = alarm.clone();
            sqlite.progress_handler(STEPS_PER_CHECK, Some(move || alarm.interrupts()))
        };
        configure().map_err(to_sqlx)?;
        Ok(LocalConnection { sqlite, prepared: HashMap::new(), alarm })
    }

    /// Runs a statement without parameters, such as `COMMIT`.
    pub fn execute(&mut self, sql: &str) -> sqlx::Result<()> {
        let run = || self.sqlite.prepare_cached(sql)?.raw_query().next().map(drop);
        run().map_err(to_sqlx)
    }

    /// Runs a statement. Returns the number of affected rows.
    pub fn run(&mut self, sql: &str, arguments: LocalArguments) -> sqlx::Result<u64> {
        self.query(sql, arguments, usize::MAX, |_, _| {})?;
        Ok(self.sqlite.changes())
    }

    /// Returns up to `most` rows.
    pub fn rows(
        &mut self,
        sql: &str,
        arguments: LocalArguments,
        most: usize,
    ) -> sqlx::Result<Vec<LocalRow>> {
        let mut rows = Vec::new();
        self.query(sql, arguments, most, |values, columns| {
            rows.push(LocalRow { values, columns: columns.clone() });
        })?;
        Ok(rows)
    }

    fn query(
        &mut self,
        sql: &str,
        arguments: LocalArguments,
        most: usize,
        mut read: impl FnMut(Box<[Value]>, &Arc<Columns>),
    ) -> sqlx::Result<()> {
        if self.alarm.has_expired() {
            return Err(interrupted());
        }
        if !self.prepared.contains_key(sql) {
            if self.prepared.len() >= MAX_PREPARED {
                self.prepared.clear();
            }
            let prepared = Prepared { sql: for_sqlite(sql), columns: None };
            self.prepared.insert(sql.to_owned(), prepared);
        }
        let prepared = self.prepared.get_mut(sql).expect("it was inserted above");
        let mut run = || {
            let mut statement = self.sqlite.prepare_cached(&prepared.sql)?;
            for (place, value) in arguments.0.iter().enumerate() {
                statement.raw_bind_parameter(place + 1, value)?;
            }
            let columns = prepared
                .columns
                .get_or_insert_with(|| Arc::new(Columns::new(&statement.column_names())));
            let count = statement.column_count();
            let mut rows = statement.raw_query();
            for _ in 0..most {
                let Some(row) = rows.next()? else { break };
                let values: rusqlite::Result<_> =
                    (0..count).map(|place| Ok(row.get_ref(place)?.try_into()?)).collect();
                read(values?, columns);
            }
            Ok(())
        };
        run().map_err(to_sqlx)
    }
}

/// Removes row locks, which a single writer does not need, and numbers parameters: SQLite would
/// number `$2 … $1` by their order in the text.
fn for_sqlite(sql: &str) -> String {
    let text = sql.replace(" FOR UPDATE SKIP LOCKED", "").replace(" FOR UPDATE", "");
    let mut numbered = String::with_capacity(text.len());
    let mut pieces = text.split('$');
    numbered.extend(pieces.next());
    for piece in pieces {
        numbered.push(if piece.starts_with(|c: char| c.is_ascii_digit()) { '?' } else { '$' });
        numbered.push_str(piece);
    }
    numbered
}

/// Interrupts the statements of a connection: at a deadline, or after a number of steps.
#[derive(Clone, Default)]
pub struct Alarm(Arc<AlarmState>);

struct AlarmState {
    /// Milliseconds since [`epoch`].
    deadline: AtomicU64,
    /// Remaining checks.
    checks: AtomicI64,
}

impl Default for AlarmState {
    fn default() -> AlarmState {
        AlarmState { deadline: AtomicU64::new(u64::MAX), checks: AtomicI64::new(i64::MAX) }
    }
}

fn epoch() -> Instant {
    static EPOCH: OnceLock<Instant> = OnceLock::new();
    *EPOCH.get_or_init(Instant::now)
}

impl Alarm {
    /// Interrupts statements after `limit`.
    pub fn set(&self, limit: Duration) {
        let deadline = u64::try_from((epoch().elapsed() + limit).as_millis()).unwrap_or(u64::MAX);
        self.0.deadline.store(deadline, Relaxed);
        self.0.checks.store(i64::MAX, Relaxed);
    }

    /// Also interrupts them after this number of VM steps.
    pub fn limit_steps(&self, steps: i64) {
        self.0.checks.store(steps / i64::from(STEPS_PER_CHECK), Relaxed);
    }

    /// Removes the deadline and the limit of steps.
    pub fn clear(&self) {
        self.0.deadline.store(u64::MAX, Relaxed);
        self.0.checks.store(i64::MAX, Relaxed);
    }

    /// Returns whether the number of steps was reached.
    pub fn is_exhausted(&self) -> bool {
        self.0.checks.load(Relaxed) <= 0
    }

    fn has_expired(&self) -> bool {
        let deadline = self.0.deadline.load(Relaxed);
        deadline != u64::MAX && epoch().elapsed().as_millis() >= u128::from(deadline)
    }

    fn interrupts(&self) -> bool {
        self.0.checks.fetch_sub(1, Relaxed) <= 1 || self.has_expired()
    }
}

// ---- errors -------------------------------------------------------------------------------------

/// An error of SQLite.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
struct LocalError {
    /// The extended result code. <https://www.sqlite.org/rescode.html>
    code: i32,
    message: String,
}

impl DatabaseError for LocalError {
    fn message(&self) -> &str {
        &self.message
    }

    fn code(&self) -> Option<Cow<'_, str>> {
        Some(self.code.to_string().into())
    }

    fn as_error(&self) -> &(dyn StdError + Send + Sync + 'static) {
        self
    }

    fn as_error_mut(&mut self) -> &mut (dyn StdError + Send + Sync + 'static) {
        self
    }

    fn into_error(self: Box<Self>) -> Box<dyn StdError + Send + Sync + 'static> {
        self
    }

    fn kind(&self) -> ErrorKind {
        match self.code {
            ffi::SQLITE_CONSTRAINT_UNIQUE | ffi::SQLITE_CONSTRAINT_PRIMARYKEY => {
                ErrorKind::UniqueViolation
            }
            ffi::SQLITE_CONSTRAINT_FOREIGNKEY => ErrorKind::ForeignKeyViolation,
            ffi::SQLITE_CONSTRAINT_NOTNULL => ErrorKind::NotNullViolation,
            ffi::SQLITE_CONSTRAINT_CHECK => ErrorKind::CheckViolation,
            _ => ErrorKind::Other,
        }
    }
}

fn interrupted() -> sqlx::Error {
    let message = "interrupted".to_owned();
    LocalError { code: ffi::SQLITE_INTERRUPT, message }.into()
}

fn to_sqlx(error: rusqlite::Error) -> sqlx::Error {
    let message = error.to_string();
    match error {
        rusqlite::Error::SqliteFailure(error, _) => {
            LocalError { code: error.extended_code, message }.into()
        }
        error => sqlx::Error::Decode(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rusqlite::StatementStatus;
    use sqlx::{Arguments, FromRow, Row, types::Json};

    fn connection(file: &tempfile::NamedTempFile) -> LocalConnection {
        let mut connection = LocalConnection::open(file.path(), true, Duration::ZERO).unwrap();
        let table =
            "CREATE TABLE t (number BIGINT PRIMARY KEY, flag BOOLEAN, text TEXT, json JSONB)";
        connection.execute(table).unwrap();
        connection
    }

    fn arguments<const N: usize>(values: [i64; N]) -> LocalArguments {
        let mut arguments = LocalArguments::default();
        values.into_iter().for_each(|value| arguments.add(value).unwrap());
        arguments
    }

    #[test]
    fn parameters_are_bound_by_their_numbers_and_locks_are_left_out() {
        for (sql, expected) in [
            ("SELECT $2, $1", "SELECT ?2, ?1"),
            ("SELECT a FROM t WHERE b = $1 FOR UPDATE SKIP LOCKED", "SELECT a FROM t WHERE b = ?1"),
            ("SELECT a ->> '$.b' FROM t FOR UPDATE", "SELECT a ->> '$.b' FROM t"),
        ] {
            assert_eq!(for_sqlite(sql), expected);
        }
        let file = tempfile::NamedTempFile::new().unwrap();
        let sql = "SELECT $2 - $1 AS difference, $1 AS first";
        let rows = connection(&file).rows(sql, arguments([3, 5]), 1).unwrap();
        assert_eq!((rows[0].get::<i64, _>("difference"), rows[0].get::<i64, _>(1)), (2, 3));
    }

    #[test]
    fn a_statement_is_prepared_once_for_all_values() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let mut connection = connection(&file);
        connection.execute("CREATE INDEX some ON t (text) WHERE flag = 1").unwrap();
        let sql = "SELECT * FROM t WHERE flag = $1 AND text LIKE 'a%' ORDER BY text LIMIT $2";
        for n in 0..5 {
            connection.rows(sql, arguments([n, 10 + n]), 1).unwrap();
        }
        let statement = connection.sqlite.prepare_cached(&for_sqlite(sql)).unwrap();
        assert_eq!(statement.get_status(StatementStatus::Run), 5);
        assert_eq!(statement.get_status(StatementStatus::RePrepare), 0);
    }

    #[test]
    fn values_are_read_as_they_were_bound() {
        #[derive(Debug, PartialEq, FromRow)]
        struct Record {
            number: i64,
            flag: bool,
            text: Option<String>,
            json: Json<serde_json::Value>,
        }
        let file = tempfile::NamedTempFile::new().unwrap();
        let mut connection = connection(&file);
        for (number, text, json) in [
            (1, Some("a".to_owned()), serde_json::json!({ "b": [1, null] })),
            (2, None, serde_json::json!(12)),
            (3, Some("12".to_owned()), serde_json::json!("12")),
        ] {
            let mut arguments = arguments([number]);
            arguments.add(number > 1).unwrap();
            arguments.add(&text).unwrap();
            arguments.add(Json(&json)).unwrap();
            let insert = "INSERT INTO t VALUES ($1, $2, $3, $4)";
            assert_eq!(connection.run(insert, arguments).unwrap(), 1);
            let select = "SELECT * FROM t WHERE number = $1";
            let rows = connection.rows(select, self::arguments([number]), 1).unwrap();
            let expected = Record { number, flag: number > 1, text, json: Json(json) };
            assert_eq!(Record::from_row(&rows[0]).unwrap(), expected);
        }
        let mistaken = connection.rows("SELECT text FROM t WHERE number = 1", arguments([]), 1);
        assert!(<(i64,)>::from_row(&mistaken.unwrap()[0]).is_err());
    }

    #[test]
    fn errors_have_their_codes() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let mut connection = connection(&file);
        let insert = "INSERT INTO t (number) VALUES ($1)";
        connection.run(insert, arguments([1])).unwrap();
        let error = connection.run(insert, arguments([1])).unwrap_err();
        let error = error.as_database_error().unwrap();
        assert!(error.is_unique_violation() && error.code().unwrap() == "1555");
        assert!(error.message().contains("t.number"), "{error}");
        assert!(connection.run("SELECT", arguments([])).unwrap_err().as_database_error().is_some());
    }

    #[test]
    fn an_alarm_interrupts_statements() {
        const ENDLESS: &str =
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT MAX(i) FROM n";
        let file = tempfile::NamedTempFile::new().unwrap();
        let mut connection = connection(&file);
        let alarm = connection.alarm.clone();
        let interrupted = |connection: &mut LocalConnection, sql: &str| {
            let error = connection.rows(sql, arguments([]), 1).err();
            error.is_some_and(|error| error.as_database_error().unwrap().code().unwrap() == "9")
        };
        alarm.set(Duration::from_secs(60));
        alarm.limit_steps(30_000);
        assert!(interrupted(&mut connection, ENDLESS) && alarm.is_exhausted());
        alarm.set(Duration::from_millis(10));
        assert!(interrupted(&mut connection, ENDLESS) && !alarm.is_exhausted());
        // The time is over for every later statement.
        assert!(interrupted(&mut connection, "SELECT 1"));
        alarm.clear();
        assert!(!interrupted(&mut connection, "SELECT 1"));
    }
}
