//! The file of a SQLite database: its permissions, and its lock.

use std::{
    fs::{File, OpenOptions, TryLockError},
    io,
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    str::FromStr,
};

use sqlx_sqlite::SqliteConnectOptions;

use crate::store::{Error, Result, UnavailableReason};

/// A lock on `FILE-lock`: while a user of the database shares it, the file is not replaced.
/// SQLite's own locks do not suffice: they are on the file that a restore replaces.
#[derive(Debug)]
pub(in crate::store) struct DatabaseLock {
    _lock: File,
}

impl DatabaseLock {
    pub(in crate::store) fn shared(database: &Path) -> Result<DatabaseLock> {
        let cause = || format!("{} is being restored", database.display());
        DatabaseLock::lock(database, File::try_lock_shared)?
            .ok_or_else(|| Error::unavailable(UnavailableReason::Locked, cause()))
    }

    /// Returns `None` if the database is in use.
    pub(in crate::store) fn exclusive(database: &Path) -> Result<Option<DatabaseLock>> {
        DatabaseLock::lock(database, File::try_lock)
    }

    fn lock(
        database: &Path,
        try_lock: fn(&File) -> Result<(), TryLockError>,
    ) -> Result<Option<DatabaseLock>> {
        let path = sibling_path(database, "-lock");
        let lock = open_private(&path)?;
        match try_lock(&lock) {
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
    open_private(database)?;
    Ok(in_use)
}

/// Opens a file for writing; creates it for this user only if it does not exist.
fn open_private(path: &Path) -> Result<File> {
    let mut options = OpenOptions::new();
    let opened = options.write(true).create(true).mode(0o600).open(path);
    opened.map_err(|error| not_writable(path, &error))
}

pub(in crate::store) fn not_writable(path: &Path, error: &io::Error) -> Error {
    Error::unavailable(UnavailableReason::NotWritable, format!("{}: {error}", path.display()))
}
