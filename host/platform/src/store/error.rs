//! Database errors, classified by their consequences.

use std::{fmt, sync::Arc, time::Duration};

use sqlx::{error::DatabaseError, migrate::MigrateError, postgres::PgDatabaseError};

/// An error of the store. Its text is for operators.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    /// The database is unavailable. Nothing is committed, and a retry may succeed.
    #[error("{trouble}: {cause}")]
    Unavailable { trouble: UnavailableReason, cause: String },
    /// The response to `COMMIT` is missing: the transaction is committed or had no effect.
    #[error(
        "the response to COMMIT is missing, so it is unknown whether the transaction is committed: {0}"
    )]
    CommitUnknown(String),
    /// A statement failed and its error was ignored; the transaction was not committed.
    #[error("an earlier statement of this transaction failed, and its error was ignored")]
    Aborted,
    /// A setting, or a schema, that this version cannot work with.
    #[error("{0}")]
    Misconfigured(String),
    /// A statement that the database rejects: a constraint violation, or a bug.
    #[error(transparent)]
    Sql(Arc<sqlx::Error>),
}

/// The reason for unavailability. The text says what an operator can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnavailableReason {
    TimedOut,
    PoolExhausted,
    WriterBusy,
    Conflict,
    Locked,
    DiskFull,
    DiskError,
    NotWritable,
    Corrupt,
    Unreachable,
    SchemaChanged,
}

impl fmt::Display for UnavailableReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            UnavailableReason::TimedOut => {
                "the transaction took too long and was rolled back; if this persists, check the load on the database"
            }
            UnavailableReason::PoolExhausted => {
                "no connection to the database was free in time; if the database responds, allow more connections"
            }
            UnavailableReason::WriterBusy => {
                "the writer of the database was not free in time; check its load, and whether another process has locked the database"
            }
            UnavailableReason::Conflict => {
                "the transaction kept conflicting with others; if this persists, find the conflicting locks"
            }
            UnavailableReason::Locked => {
                "the database is locked by another process; end the other process that has opened it for writing"
            }
            UnavailableReason::DiskFull => "the disk of the database is full; free space, no restart is needed",
            UnavailableReason::DiskError => "the disk of the database fails; check the system log",
            UnavailableReason::NotWritable => {
                "the database cannot be opened or written; check that its folder exists, and the permissions of this user"
            }
            UnavailableReason::Corrupt => {
                "the database is damaged; stop the host, keep the file, and restore a backup"
            }
            UnavailableReason::Unreachable => "the database does not respond; check that it is running",
            UnavailableReason::SchemaChanged => "the schema was changed while a connection used it",
        })
    }
}

/// Returns whether a statement violated a unique constraint.
#[must_use]
pub fn is_duplicate(error: &Error) -> bool {
    let Error::Sql(error) = error else { return false };
    error.as_database_error().is_some_and(|error| error.is_unique_violation())
}

impl Error {
    pub(super) fn timed_out(limit: Duration) -> Error {
        Error::unavailable(
            UnavailableReason::TimedOut,
            format!("it did not end within {} ms", limit.as_millis()),
        )
    }

    pub(super) fn pool_exhausted(limit: Duration) -> Error {
        let cause = format!("it did not begin within {} ms", limit.as_millis());
        Error::unavailable(UnavailableReason::PoolExhausted, cause)
    }

    pub(super) fn writer_busy(limit: Duration) -> Error {
        let cause = format!("it did not begin within {} ms", limit.as_millis());
        Error::unavailable(UnavailableReason::WriterBusy, cause)
    }

    /// The error of a server that could not be reached within `limit`.
    pub(super) fn connect_timed_out(limit: Duration) -> Error {
        let cause = format!("no connection could be opened within {} ms", limit.as_millis());
        Error::unavailable(UnavailableReason::Unreachable, cause)
    }

    pub(super) fn unreachable(cause: impl Into<String>) -> Error {
        Error::unavailable(UnavailableReason::Unreachable, cause.into())
    }

    fn unavailable(trouble: UnavailableReason, cause: String) -> Error {
        Error::Unavailable { trouble, cause }
    }

    /// Converts the error of a `COMMIT`. Only some prove that nothing is committed.
    pub(super) fn from_commit(error: sqlx::Error) -> Error {
        let undone =
            error.as_database_error().is_some_and(|error| match unavailable_reason(error) {
                // PostgreSQL may end a session after the commit; SQLite may fail to sync a written one.
                Some(UnavailableReason::Unreachable | UnavailableReason::DiskError) => false,
                _ => true,
            });
        if undone { error.into() } else { Error::CommitUnknown(error.to_string()) }
    }

    /// Returns whether the database failed, not the statement.
    pub(super) fn is_unavailable(&self) -> bool {
        matches!(self, Error::Unavailable { .. } | Error::CommitUnknown(_))
    }

    /// Returns whether nothing is committed and an immediate retry may succeed.
    pub(super) fn is_transient(&self) -> bool {
        let Error::Unavailable { trouble, .. } = self else { return false };
        matches!(
            trouble,
            UnavailableReason::Conflict
                | UnavailableReason::Unreachable
                | UnavailableReason::SchemaChanged
        )
    }

    /// Returns whether connections that are already open are unusable too: the server restarted, or
    /// the schema was migrated after they prepared their statements.
    pub(super) fn invalidates_connections(&self) -> bool {
        let Error::Unavailable { trouble, .. } = self else { return false };
        matches!(trouble, UnavailableReason::SchemaChanged | UnavailableReason::Unreachable)
    }
}

impl From<sqlx::Error> for Error {
    fn from(error: sqlx::Error) -> Error {
        use sqlx::Error as Sqlx;
        let trouble = match &error {
            Sqlx::Database(error) => unavailable_reason(&**error),
            Sqlx::Io(_) | Sqlx::Tls(_) | Sqlx::Protocol(_) => Some(UnavailableReason::Unreachable),
            Sqlx::WorkerCrashed | Sqlx::BeginFailed => Some(UnavailableReason::Unreachable),
            Sqlx::Configuration(_) => return Error::Misconfigured(error.to_string()),
            _ => None,
        };
        match trouble {
            Some(trouble) => Error::unavailable(trouble, error.to_string()),
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
        return Some(UnavailableReason::SchemaChanged);
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
    const CANNOT_GROW_WAL_INDEX: i32 = 4_874;
    match (code, code & 0xff) {
        (_, 5 | 6) => Some(UnavailableReason::Locked),
        (_, 8 | 14) => Some(UnavailableReason::NotWritable),
        (_, 9) => Some(UnavailableReason::TimedOut),
        (_, 13) | (CANNOT_GROW_WAL_INDEX, _) => Some(UnavailableReason::DiskFull),
        (_, 10) => Some(UnavailableReason::DiskError),
        (_, 11 | 26) => Some(UnavailableReason::Corrupt),
        _ => None,
    }
}

/// <https://www.postgresql.org/docs/current/errcodes-appendix.html>
fn postgres_reason(code: &str) -> Option<UnavailableReason> {
    match code {
        "40001" | "40P01" => Some(UnavailableReason::Conflict),
        "55P03" => Some(UnavailableReason::Locked),
        "57014" | "25P03" | "25P04" => Some(UnavailableReason::TimedOut),
        "53100" => Some(UnavailableReason::DiskFull),
        "58030" => Some(UnavailableReason::DiskError),
        "25006" => Some(UnavailableReason::NotWritable),
        "XX001" | "XX002" => Some(UnavailableReason::Corrupt),
        _ if code.starts_with("53") => Some(UnavailableReason::PoolExhausted),
        _ if code.starts_with("08") || code.starts_with("57P") => {
            Some(UnavailableReason::Unreachable)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_of_sqlite() {
        for (code, trouble) in [
            (5, Some(UnavailableReason::Locked)),
            (517, Some(UnavailableReason::Locked)), // BUSY_SNAPSHOT
            (9, Some(UnavailableReason::TimedOut)),
            (13, Some(UnavailableReason::DiskFull)),
            (4_874, Some(UnavailableReason::DiskFull)), // IOERR_SHMSIZE
            (1_034, Some(UnavailableReason::DiskError)), // IOERR_FSYNC
            (1_032, Some(UnavailableReason::NotWritable)), // READONLY_DBMOVED
            (14, Some(UnavailableReason::NotWritable)),
            (26, Some(UnavailableReason::Corrupt)),
            (2_067, None), // CONSTRAINT_UNIQUE
            (1, None),
        ] {
            assert_eq!(sqlite_reason(code), trouble, "{code}");
        }
    }

    #[test]
    fn codes_of_postgres() {
        for (code, trouble) in [
            ("40001", Some(UnavailableReason::Conflict)),
            ("40P01", Some(UnavailableReason::Conflict)),
            ("57014", Some(UnavailableReason::TimedOut)),
            ("53100", Some(UnavailableReason::DiskFull)),
            ("53300", Some(UnavailableReason::PoolExhausted)),
            ("57P01", Some(UnavailableReason::Unreachable)),
            ("08006", Some(UnavailableReason::Unreachable)),
            ("25006", Some(UnavailableReason::NotWritable)),
            ("23505", None),
            ("42601", None),
        ] {
            assert_eq!(postgres_reason(code), trouble, "{code}");
        }
    }
}
