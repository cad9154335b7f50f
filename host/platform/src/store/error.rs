//! Database errors, classified by their consequences.

use std::{fmt, sync::Arc, time::Duration};

use sqlx::{error::DatabaseError, migrate::MigrateError, postgres::PgDatabaseError};

/// An error of the store. Its text is for operators.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    /// The database is unavailable. Nothing is committed, and a retry may succeed.
    #[error("{trouble}: {cause}")]
    Unavailable { trouble: Trouble, cause: String },
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
pub enum Trouble {
    Slow,
    Busy,
    NoTurn,
    Conflict,
    Locked,
    Full,
    Disk,
    NotWritable,
    Damaged,
    Unreachable,
    Outdated,
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Trouble::Slow => {
                "the transaction took too long and was rolled back; if this persists, check the load on the database"
            }
            Trouble::Busy => {
                "no connection to the database was free in time; if the database responds, allow more connections"
            }
            Trouble::NoTurn => {
                "the writer of the database was not free in time; check its load, and whether another process has locked the database"
            }
            Trouble::Conflict => {
                "the transaction kept conflicting with others; if this persists, find the conflicting locks"
            }
            Trouble::Locked => {
                "the database is locked by another process; end the other process that has opened it for writing"
            }
            Trouble::Full => "the disk of the database is full; free space, no restart is needed",
            Trouble::Disk => "the disk of the database fails; check the system log",
            Trouble::NotWritable => {
                "the database cannot be opened or written; check that its folder exists, and the permissions of this user"
            }
            Trouble::Damaged => {
                "the database is damaged; stop the host, keep the file, and restore a backup"
            }
            Trouble::Unreachable => "the database does not respond; check that it is running",
            Trouble::Outdated => "the schema was changed while a connection used it",
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
    pub(super) fn slow(limit: Duration) -> Error {
        Error::unavailable(Trouble::Slow, format!("it did not end within {} ms", limit.as_millis()))
    }

    pub(super) fn busy(limit: Duration) -> Error {
        let cause = format!("it did not begin within {} ms", limit.as_millis());
        Error::unavailable(Trouble::Busy, cause)
    }

    pub(super) fn no_turn(limit: Duration) -> Error {
        let cause = format!("it did not begin within {} ms", limit.as_millis());
        Error::unavailable(Trouble::NoTurn, cause)
    }

    /// The error of a server that could not be reached within `limit`.
    pub(super) fn silent(limit: Duration) -> Error {
        let cause = format!("no connection could be opened within {} ms", limit.as_millis());
        Error::unavailable(Trouble::Unreachable, cause)
    }

    pub(super) fn unreachable(cause: impl Into<String>) -> Error {
        Error::unavailable(Trouble::Unreachable, cause.into())
    }

    fn unavailable(trouble: Trouble, cause: String) -> Error {
        Error::Unavailable { trouble, cause }
    }

    /// Converts the error of a `COMMIT`. Only some prove that nothing is committed.
    pub(super) fn of_commit(error: sqlx::Error) -> Error {
        let undone = error.as_database_error().is_some_and(|error| match trouble(error) {
            // PostgreSQL may end a session after the commit; SQLite may fail to sync a written one.
            Some(Trouble::Unreachable | Trouble::Disk) => false,
            _ => true,
        });
        if undone { error.into() } else { Error::CommitUnknown(error.to_string()) }
    }

    /// Returns whether the database failed, not the statement.
    pub(super) fn is_trouble(&self) -> bool {
        matches!(self, Error::Unavailable { .. } | Error::CommitUnknown(_))
    }

    /// Returns whether nothing is committed and an immediate retry may succeed.
    pub(super) fn is_transient(&self) -> bool {
        let Error::Unavailable { trouble, .. } = self else { return false };
        matches!(trouble, Trouble::Conflict | Trouble::Unreachable | Trouble::Outdated)
    }

    /// Returns whether connections that are already open are unusable too: the server restarted, or
    /// the schema was migrated after they prepared their statements.
    pub(super) fn concerns_all(&self) -> bool {
        let Error::Unavailable { trouble, .. } = self else { return false };
        matches!(trouble, Trouble::Outdated | Trouble::Unreachable)
    }
}

impl From<sqlx::Error> for Error {
    fn from(error: sqlx::Error) -> Error {
        use sqlx::Error as Sqlx;
        let trouble = match &error {
            Sqlx::Database(error) => trouble(&**error),
            Sqlx::Io(_) | Sqlx::Tls(_) | Sqlx::Protocol(_) => Some(Trouble::Unreachable),
            Sqlx::WorkerCrashed | Sqlx::BeginFailed => Some(Trouble::Unreachable),
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

fn trouble(error: &dyn DatabaseError) -> Option<Trouble> {
    let postgres = error.try_downcast_ref::<PgDatabaseError>();
    // The code means only "feature not supported", and the text depends on the server's language.
    if postgres.and_then(PgDatabaseError::routine) == Some("RevalidateCachedQuery") {
        return Some(Trouble::Outdated);
    }
    let code = error.code()?;
    // An SQLSTATE has five characters; SQLite's extended result codes are shorter numbers.
    match code.parse() {
        Ok(number) if code.len() < 5 => of_sqlite(number),
        _ => of_postgres(&code),
    }
}

/// <https://www.sqlite.org/rescode.html>
fn of_sqlite(code: i32) -> Option<Trouble> {
    const CANNOT_GROW_WAL_INDEX: i32 = 4_874;
    match (code, code & 0xff) {
        (_, 5 | 6) => Some(Trouble::Locked),
        (_, 8 | 14) => Some(Trouble::NotWritable),
        (_, 9) => Some(Trouble::Slow),
        (_, 13) | (CANNOT_GROW_WAL_INDEX, _) => Some(Trouble::Full),
        (_, 10) => Some(Trouble::Disk),
        (_, 11 | 26) => Some(Trouble::Damaged),
        _ => None,
    }
}

/// <https://www.postgresql.org/docs/current/errcodes-appendix.html>
fn of_postgres(code: &str) -> Option<Trouble> {
    match code {
        "40001" | "40P01" => Some(Trouble::Conflict),
        "55P03" => Some(Trouble::Locked),
        "57014" | "25P03" | "25P04" => Some(Trouble::Slow),
        "53100" => Some(Trouble::Full),
        "58030" => Some(Trouble::Disk),
        "25006" => Some(Trouble::NotWritable),
        "XX001" | "XX002" => Some(Trouble::Damaged),
        _ if code.starts_with("53") => Some(Trouble::Busy),
        _ if code.starts_with("08") || code.starts_with("57P") => Some(Trouble::Unreachable),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_of_sqlite() {
        for (code, trouble) in [
            (5, Some(Trouble::Locked)),
            (517, Some(Trouble::Locked)), // BUSY_SNAPSHOT
            (9, Some(Trouble::Slow)),
            (13, Some(Trouble::Full)),
            (4_874, Some(Trouble::Full)),        // IOERR_SHMSIZE
            (1_034, Some(Trouble::Disk)),        // IOERR_FSYNC
            (1_032, Some(Trouble::NotWritable)), // READONLY_DBMOVED
            (14, Some(Trouble::NotWritable)),
            (26, Some(Trouble::Damaged)),
            (2_067, None), // CONSTRAINT_UNIQUE
            (1, None),
        ] {
            assert_eq!(of_sqlite(code), trouble, "{code}");
        }
    }

    #[test]
    fn codes_of_postgres() {
        for (code, trouble) in [
            ("40001", Some(Trouble::Conflict)),
            ("40P01", Some(Trouble::Conflict)),
            ("57014", Some(Trouble::Slow)),
            ("53100", Some(Trouble::Full)),
            ("53300", Some(Trouble::Busy)),
            ("57P01", Some(Trouble::Unreachable)),
            ("08006", Some(Trouble::Unreachable)),
            ("25006", Some(Trouble::NotWritable)),
            ("23505", None),
            ("42601", None),
        ] {
            assert_eq!(of_postgres(code), trouble, "{code}");
        }
    }
}
