//! The file of a SQLite database: who may read it, and who uses it.

use std::{
    fs::{self, File, OpenOptions, TryLockError},
    io,
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    str::FromStr,
};

use sqlx::sqlite::SqliteConnectOptions;

use super::{Error, Result, error::Trouble};

/// As long as this lives, the database is not replaced: a lock on `FILE-lock`, shared by all who use the database.
///
/// SQLite's own locks do not tell: they are on the file, which a restored one takes the place of.
#[derive(Debug)]
pub(super) struct InUse {
    _lock: File,
}

impl InUse {
    /// Together with others.
    pub(super) fn shared(database: &Path) -> Result<InUse> {
        let (path, lock) = lock_file(database)?;
        match lock.try_lock_shared() {
            Ok(()) => Ok(InUse { _lock: lock }),
            Err(TryLockError::WouldBlock) => Err(Error::Unavailable {
                trouble: Trouble::Locked,
                cause: format!("{} is being restored", database.display()),
            }),
            Err(TryLockError::Error(error)) => Err(not_writable(&path, &error)),
        }
    }

    /// Without anyone else; `None` while somebody uses the database.
    pub(super) fn alone(database: &Path) -> Result<Option<InUse>> {
        let (path, lock) = lock_file(database)?;
        match lock.try_lock() {
            Ok(()) => Ok(Some(InUse { _lock: lock })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(not_writable(&path, &error)),
        }
    }
}

/// The path of the database that `sqlite://FILE` names.
pub(super) fn path(url: &str) -> Result<PathBuf> {
    let options = SqliteConnectOptions::from_str(url)?;
    Ok(options.get_filename().to_owned())
}

/// What stands beside a database: `FILE-wal`, `FILE-shm`, `FILE-lock`.
pub(super) fn beside(database: &Path, suffix: &str) -> PathBuf {
    let mut path = database.as_os_str().to_owned();
    path.push(suffix);
    path.into()
}

/// Makes the file, for this user alone, if there is none, and marks it as used.
pub(super) fn open_as_host(database: &Path) -> Result<InUse> {
    let in_use = InUse::shared(database)?;
    private().open(database).map_err(|error| not_writable(database, &error))?;
    Ok(in_use)
}

fn private() -> OpenOptions {
    let mut options = fs::OpenOptions::new();
    options.write(true).create(true).mode(0o600);
    options
}

fn lock_file(database: &Path) -> Result<(PathBuf, File)> {
    let path = beside(database, "-lock");
    let file = private().open(&path).map_err(|error| not_writable(&path, &error))?;
    Ok((path, file))
}

pub(super) fn not_writable(path: &Path, error: &io::Error) -> Error {
    let cause = format!("{}: {error}", path.display());
    Error::Unavailable { trouble: Trouble::NotWritable, cause }
}
