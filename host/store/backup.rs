//! Copies of a SQLite database: taken while a host serves, put back while none does.
//!
//! What a copy holds of secrets is sealed, as in the database. PostgreSQL has tools of its own.

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
};

use sqlx::{ConnectOptions, SqliteConnection, sqlite::SqliteConnectOptions};
use tempfile::NamedTempFile;

use super::{
    Error,
    file::{self, InUse, beside},
};

/// Why a copy was not made or not put back; the text says what to do. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    #[error("{0}")]
    Refused(String),
    #[error(transparent)]
    Store(#[from] Error),
    #[error("{path}: {error}", path = .0.display(), error = .1)]
    Io(PathBuf, #[source] io::Error),
}

/// Writes a copy of the database at `url`, a state between two transactions, to the file `to`, which appears when it is whole.
/// Hosts go on working meanwhile.
pub async fn backup(url: &str, to: &Path) -> Result<(), BackupError> {
    let database = sqlite_file(url, "back it up with pg_dump")?;
    must_exist(&database)?;
    if to.exists() {
        return Err(refused(format!("{} exists: name another file", to.display())));
    }
    let _in_use = InUse::shared(&database)?;
    let copy = copy(&mut open(&database, false).await?, to).await?;
    check(&mut open(copy.path(), true).await?, copy.path()).await?;
    publish(copy, to, false)
}

/// Puts the copy `from` in the place of the database at `url`. One that is there is lost, so `replace` must allow it.
pub async fn restore(from: &Path, url: &str, replace: bool) -> Result<(), BackupError> {
    let database = sqlite_file(url, "restore it with pg_restore or psql")?;
    must_exist(from)?;
    let Some(_alone) = InUse::alone(&database)? else {
        let database = database.display();
        return Err(refused(format!("{database} is in use: stop the host, and try again")));
    };
    if !replace && database.exists() {
        let database = database.display();
        return Err(refused(format!(
            "{database} exists: allow it to be replaced, or name another"
        )));
    }
    // A copy that has no log is at rest, and may stand where nothing can be written.
    let mut source = open(from, !beside(from, "-wal").exists()).await?;
    check(&mut source, from).await?;
    let copy = copy(&mut source, &database).await?;
    // They belong to the former file. SQLite would take them for the new one's.
    for suffix in ["-wal", "-shm"] {
        let stale = beside(&database, suffix);
        match fs::remove_file(&stale) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(BackupError::Io(stale, error));
            }
            _ => {}
        }
    }
    publish(copy, &database, replace)
}

fn refused(text: String) -> BackupError {
    BackupError::Refused(text)
}

fn sqlite_file(url: &str, instead: &str) -> Result<PathBuf, BackupError> {
    if url.starts_with("postgres") {
        return Err(refused(format!("the database is PostgreSQL: {instead}")));
    }
    super::check_url(url)?;
    Ok(file::path(url)?)
}

fn must_exist(file: &Path) -> Result<(), BackupError> {
    fs::metadata(file).map(drop).map_err(|error| BackupError::Io(file.to_owned(), error))
}

/// A copy beside `to`, for this user alone and on the disk; gone again unless it is published.
async fn copy(from: &mut SqliteConnection, to: &Path) -> Result<NamedTempFile, BackupError> {
    let at = |error| BackupError::Io(to.to_owned(), error);
    let copy =
        tempfile::Builder::new().prefix(".tollhouse-").tempfile_in(folder(to)).map_err(at)?;
    let path =
        copy.path().to_str().ok_or_else(|| refused(format!("{} is no UTF-8", to.display())))?;
    let vacuum = sqlx::query("VACUUM INTO $1").bind(path.to_owned());
    vacuum.execute(from).await.map_err(Error::from)?;
    copy.as_file().sync_all().map_err(at)?;
    Ok(copy)
}

/// The copy appears under its name at once and whole, or not at all.
fn publish(copy: NamedTempFile, to: &Path, replace: bool) -> Result<(), BackupError> {
    let at = |error| BackupError::Io(to.to_owned(), error);
    if replace {
        copy.persist(to).map_err(|error| at(error.error))?;
    } else {
        copy.persist_noclobber(to).map_err(|error| at(error.error))?;
    }
    File::open(folder(to)).and_then(|folder| folder.sync_all()).map_err(at)
}

pub(super) fn folder(of: &Path) -> &Path {
    of.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Only what nobody writes to meanwhile is `at_rest`.
pub(super) async fn open(file: &Path, at_rest: bool) -> Result<SqliteConnection, Error> {
    let options = SqliteConnectOptions::new().filename(file).read_only(true).immutable(at_rest);
    Ok(options.connect().await?)
}

/// Refuses what is damaged, no database of ours, or of a later version.
async fn check(connection: &mut SqliteConnection, file: &Path) -> Result<(), BackupError> {
    let shown = file.display();
    let (found,): (String,) = sqlx::query_as("PRAGMA integrity_check(1)")
        .fetch_one(&mut *connection)
        .await
        .map_err(Error::from)?;
    if found != "ok" {
        return Err(refused(format!("{shown} is damaged: {found}")));
    }
    let applied: Vec<(i64, Vec<u8>, bool)> =
        sqlx::query_as("SELECT version, checksum, success FROM _sqlx_migrations")
            .fetch_all(connection)
            .await
            .map_err(|_| refused(format!("{shown} is no database of Tollhouse")))?;
    let schema = super::sqlite_schema();
    for (version, checksum, success) in &applied {
        let known = schema.iter().find(|migration| migration.version == *version);
        if !success || known.is_none_or(|migration| *migration.checksum != checksum[..]) {
            let text = format!(
                "{shown} has another schema, at version {version}: use the Tollhouse that wrote it, or a later one"
            );
            return Err(refused(text));
        }
    }
    Ok(())
}
