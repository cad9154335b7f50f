//! The file of a SQLite database: its permissions, and its lock.

use std::{
    fs::{self, File, OpenOptions, TryLockError},
    io,
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    str::FromStr,
};

use sqlx::sqlite::SqliteConnectOptions;

use crate::store::{Error, Result, error::UnavailableReason};

/// A lock on `FILE-lock`: while a user of the database shares it, the file is not replaced.
/// SQLite's own locks do not suffice: they are on the file that a restore replaces.
#[derive(Debug)]
pub(in crate::store) struct DatabaseLock {
    _lock: File,
}

impl DatabaseLock {
    /// Locks in shared mode.
    pub(in crate::store) fn shared(database: &Path) -> Result<DatabaseLock> {
        let (path, lock) = open_lock_file(database)?;
        match lock.try_lock_shared() {
            Ok(()) => Ok(DatabaseLock { _lock: lock }),
            Err(TryLockError::WouldBlock) => Err(Error::Unavailable {
                trouble: UnavailableReason::Locked,
                cause: format!("{} is being restored", database.display()),
            }),
            Err(TryLockError::Error(error)) => Err(not_writable(&path, &error)),
        }
    }

    /// Locks in exclusive mode; `None` if the database is in use.
    pub(in crate::store) fn exclusive(database: &Path) -> Result<Option<DatabaseLock>> {
        let (path, lock) = open_lock_file(database)?;
        match lock.try_lock() {
            Ok(()) => Ok(Some(DatabaseLock { _lock: lock })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(not_writable(&path, &error)),
        }
    }
}

/// Returns the path in `sqlite://FILE`.
pub(in crate::store) fn path(url: &str) -> Result<PathBuf> {
    let options = SqliteConnectOptions::from_str(url)?;
    Ok(options.get_filename().to_owned())
}

/// Returns the path of a file beside a database: `FILE-wal`, `FILE-shm`, `FILE-lock`.
pub(in crate::store) fn sibling_path(database: &Path, suffix: &str) -> PathBuf {
    let mut path = database.as_os_str().to_owned();
    path.push(suffix);
    path.into()
}

/// Creates the file if it does not exist, for this user only, and locks it in shared mode.
pub(in crate::store) fn open_as_host(database: &Path) -> Result<DatabaseLock> {
    let in_use = DatabaseLock::shared(database)?;
    private_file_options().open(database).map_err(|error| not_writable(database, &error))?;
    Ok(in_use)
}

fn private_file_options() -> OpenOptions {
    let mut options = fs::OpenOptions::new();
    options.write(true).create(true).mode(0o600);
    options
}

fn open_lock_file(database: &Path) -> Result<(PathBuf, File)> {
    let path = sibling_path(database, "-lock");
    let file = private_file_options().open(&path).map_err(|error| not_writable(&path, &error))?;
    Ok((path, file))
}

pub(in crate::store) fn not_writable(path: &Path, error: &io::Error) -> Error {
    let cause = format!("{}: {error}", path.display());
    Error::Unavailable { trouble: UnavailableReason::NotWritable, cause }
}
