//! Database errors, classified by their consequences.

use std::{borrow::Cow, sync::Arc, time::Duration};

use sqlx::{error::DatabaseError, migrate::MigrateError};
use sqlx_postgres::PgDatabaseError;

use self::UnavailableReason::*;
use super::postgres::batch::NOT_ONE_ROW;

/// An error of the store. Its text is for operators.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    /// The database is unavailable. Nothing is committed, and a retry may succeed.
    #[error("{reason}: {cause}")]
    Unavailable { reason: UnavailableReason, cause: String },
    /// The response to `COMMIT` is missing: the transaction is committed or had no effect.
    #[error(
        "the response to COMMIT is missing, so it is unknown whether the transaction is committed: {0}"
    )]
    CommitUnknown(String),
    /// A statement failed and its error was ignored; the transaction was not committed.
    #[error("an earlier statement of this transaction failed, and its error was ignored")]
    Aborted,
    /// A statement that must affect one row affected another number; nothing is committed.
    #[error("a statement did not affect exactly one row")]
    NotOneRow,
    /// A setting, or a schema, that this version cannot work with.
    #[error("{0}")]
    Misconfigured(String),
    /// A statement that the database rejects: a constraint violation, or a bug.
    #[error(transparent)]
    Sql(Arc<sqlx::Error>),
}

/// The reason for unavailability. The text states the remedy for operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnavailableReason {
    #[error(
        "the transaction took too long and was rolled back; if this persists, check the load on the database"
    )]
    TimedOut,
    #[error(
        "no connection to the database was free in time; if the database responds, allow more connections"
    )]
    PoolExhausted,
    #[error(
        "the writer of the database was not free in time; check its load, and whether another process has locked the database"
    )]
    WriterBusy,
    #[error(
        "the transaction kept conflicting with others; if this persists, find the conflicting locks"
    )]
    Conflict,
    #[error(
        "the database is locked by another process; end the other process that has opened it for writing"
    )]
    Locked,
    #[error("the disk of the database is full; free space, no restart is needed")]
    DiskFull,
    #[error("the disk of the database fails; check the system log")]
    DiskError,
    #[error(
        "the database cannot be opened or written; check that its folder exists, and the permissions of this user"
    )]
    NotWritable,
    #[error("the database is damaged; stop the host, keep the file, and restore a backup")]
    Corrupt,
    #[error("the database does not respond; check that it is running")]
    Unreachable,
    #[error("the schema was changed while a connection used it")]
    SchemaChanged,
}

/// Returns whether a statement violated a unique constraint.
pub fn is_duplicate(error: &Error) -> bool {
    let Error::Sql(error) = error else { return false };
    error.as_database_error().is_some_and(|error| error.is_unique_violation())
}

impl Error {
    /// Returns the code and message with which the database rejected a statement. A message is
    /// independent of the server's language only if a trigger raised it.
    pub fn from_database(&self) -> Option<(Cow<'_, str>, &str)> {
        let Error::Sql(error) = self else { return None };
        let error = error.as_database_error()?;
        Some((error.code().unwrap_or_default(), error.message()))
    }

    pub(super) fn unavailable(reason: UnavailableReason, cause: impl Into<String>) -> Error {
        Error::Unavailable { reason, cause: cause.into() }
    }

    /// The error for something that did not happen in time: `what` is followed by "within 10 ms".
    pub(super) fn late(reason: UnavailableReason, what: &str, limit: Duration) -> Error {
        Error::unavailable(reason, format!("{what} within {} ms", limit.as_millis()))
    }

    /// Converts the error of a `COMMIT`. Only some prove that nothing is committed.
    pub(super) fn from_commit(error: sqlx::Error) -> Error {
        // PostgreSQL may end a session after the commit; SQLite may fail to sync a written one.
        let undone = error.as_database_error().is_some_and(|error| {
            !matches!(unavailable_reason(error), Some(Unreachable | DiskError))
        });
        if undone { error.into() } else { Error::CommitUnknown(error.to_string()) }
    }

    /// Returns whether the database failed, not the statement.
    pub(super) fn is_unavailable(&self) -> bool {
        matches!(self, Error::Unavailable { .. } | Error::CommitUnknown(_))
    }

    /// Returns whether nothing is committed and an immediate retry may succeed.
    pub(super) fn is_transient(&self) -> bool {
        matches!(self, Error::Unavailable { reason: Conflict | Unreachable | SchemaChanged, .. })
    }

    /// Returns whether connections that are already open are unusable too: the server restarted, or
    /// the schema was migrated after they prepared their statements.
    pub(super) fn invalidates_connections(&self) -> bool {
        let unavailable =
            matches!(self, Error::Unavailable { reason: Unreachable | SchemaChanged, .. });
        unavailable || matches!(self, Error::CommitUnknown(_))
    }
}

impl From<sqlx::Error> for Error {
    fn from(error: sqlx::Error) -> Error {
        use sqlx::Error as Sqlx;
        let reason = match &error {
            Sqlx::Database(error) if error.code().is_some_and(|code| code == NOT_ONE_ROW) => {
                return Error::NotOneRow;
            }
            Sqlx::Database(error) => unavailable_reason(&**error),
            Sqlx::Io(_)
            | Sqlx::Tls(_)
            | Sqlx::Protocol(_)
            | Sqlx::WorkerCrashed
            | Sqlx::BeginFailed => Some(Unreachable),
            Sqlx::Configuration(_) => return Error::Misconfigured(error.to_string()),
            _ => None,
        };
        match reason {
            Some(reason) => Error::unavailable(reason, error.to_string()),
            None => Error::Sql(Arc::new(error)),
        }
    }
}

impl From<MigrateError> for Error {
    fn from(error: MigrateError) -> Error {
        match error {
            MigrateError::Execute(error) | MigrateError::ExecuteMigration(error, _) => error.into(),
            error => Error::Misconfigured(format!(
                "the schema of the database does not match this version: {error}"
            )),
        }
    }
}

fn unavailable_reason(error: &dyn DatabaseError) -> Option<UnavailableReason> {
    let postgres = error.try_downcast_ref::<PgDatabaseError>();
    // The code means only "feature not supported", and the text depends on the server's language.
    if postgres.and_then(PgDatabaseError::routine) == Some("RevalidateCachedQuery") {
        return Some(SchemaChanged);
    }
    let code = error.code()?;
    // An SQLSTATE has five characters; SQLite's extended result codes are shorter numbers.
    match code.parse() {
        Ok(number) if code.len() < 5 => sqlite_reason(number),
        _ => postgres_reason(&code),
    }
}

/// <https://www.sqlite.org/rescode.html>
fn sqlite_reason(code: i32) -> Option<UnavailableReason> {
    match (code, code & 0xff) {
        (_, 5 | 6) => Some(Locked),
        (_, 8 | 14) => Some(NotWritable),
        (_, 9) => Some(TimedOut),
        (_, 13) | (4_874, _) => Some(DiskFull), // 4874: the WAL index cannot grow
        (_, 10) => Some(DiskError),
        (_, 11 | 26) => Some(Corrupt),
        _ => None,
    }
}

/// <https://www.postgresql.org/docs/current/errcodes-appendix.html>
fn postgres_reason(code: &str) -> Option<UnavailableReason> {
    match code {
        "40001" | "40P01" => Some(Conflict),
        "55P03" => Some(Locked),
        "57014" | "25P03" | "25P04" => Some(TimedOut),
        "53100" => Some(DiskFull),
        "58030" => Some(DiskError),
        "25006" => Some(NotWritable),
        "XX001" | "XX002" => Some(Corrupt),
        _ if code.starts_with("53") => Some(PoolExhausted),
        _ if code.starts_with("08") || code.starts_with("57P") => Some(Unreachable),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_of_sqlite() {
        for (code, reason) in [
            (5, Some(Locked)),
            (517, Some(Locked)), // BUSY_SNAPSHOT
            (9, Some(TimedOut)),
            (13, Some(DiskFull)),
            (4_874, Some(DiskFull)),    // IOERR_SHMSIZE
            (1_034, Some(DiskError)),   // IOERR_FSYNC
            (1_032, Some(NotWritable)), // READONLY_DBMOVED
            (14, Some(NotWritable)),
            (26, Some(Corrupt)),
            (2_067, None), // CONSTRAINT_UNIQUE
            (1, None),
        ] {
            assert_eq!(sqlite_reason(code), reason, "{code}");
        }
    }

    #[test]
    fn codes_of_postgres() {
        for (code, reason) in [
            ("40001", Some(Conflict)),
            ("40P01", Some(Conflict)),
            ("57014", Some(TimedOut)),
            ("53100", Some(DiskFull)),
            ("53300", Some(PoolExhausted)),
            ("57P01", Some(Unreachable)),
            ("08006", Some(Unreachable)),
            ("25006", Some(NotWritable)),
            ("23505", None),
            ("42601", None),
        ] {
            assert_eq!(postgres_reason(code), reason, "{code}");
        }
    }
}
