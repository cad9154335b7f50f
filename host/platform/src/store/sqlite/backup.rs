//! SQLite backups: taken while a host serves, restored while none does.
//!
//! Secrets in a backup are sealed, as in the database. PostgreSQL has its own tools.

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
};

use sqlx::{ConnectOptions, Connection as _};
use sqlx_sqlite::{SqliteConnectOptions, SqliteConnection};
use tempfile::NamedTempFile;

use self::BackupError::Refused;
use super::file::{self, DatabaseLock, not_writable, sibling_path};
use crate::store::{Error, schema};

/// A failed backup or restore. Nothing was changed, unless only the last sync of the folder failed.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    #[error("{0}")]
    Refused(String),
    #[error(transparent)]
    Store(#[from] Error),
    #[error("{path}: {error}", path = .0.display(), error = .1)]
    Io(PathBuf, #[source] io::Error),
}

/// Writes a consistent copy of the database at `url` to the file `to`. Hosts keep serving.
pub async fn backup(url: &str, to: &Path) -> Result<(), BackupError> {
    let database = sqlite_file(url, "back it up with pg_dump")?;
    fs::metadata(&database).map_err(|error| not_writable(&database, &error))?;
    if to.exists() {
        return Err(Refused(format!("{} already exists: choose another file", to.display())));
    }
    let _in_use = DatabaseLock::shared(&database)?;
    let copy = copy_to_temporary_file(&mut open(&database, false).await?, to).await?;
    check_database(&mut open(copy.path(), true).await?, copy.path()).await?;
    persist(copy, to, false)?;
    sync_folder(to)
}

/// Replaces the database at `url` by the copy `from`. `replace` permits losing an existing one.
pub async fn restore(from: &Path, url: &str, replace: bool) -> Result<(), BackupError> {
    let database = sqlite_file(url, "restore it with pg_restore or psql")?;
    fs::metadata(from).map_err(io_error(from))?;
    let shown = database.display();
    let Some(_alone) = DatabaseLock::exclusive(&database)? else {
        return Err(Refused(format!("{shown} is in use: stop the host and retry")));
    };
    if !replace && database.exists() {
        let what = "already exists: replace it with --replace, or choose another";
        return Err(Refused(format!("{shown} {what}")));
    }
    // Without a log, nothing is pending, and the copy may be on a read-only file system.
    let mut source = open(from, !sibling_path(from, "-wal").exists()).await?;
    check_database(&mut source, from).await?;
    let copy = copy_to_temporary_file(&mut source, &database).await?;
    checkpoint_wal(&database).await;
    with_wal_moved_aside(&database, || persist(copy, &database, replace))?;
    sync_folder(&database)
}

/// Merges the log into the database file before it is replaced, so that the file alone is complete.
/// Failures are ignored: a damaged database gets no worse.
async fn checkpoint_wal(database: &Path) {
    if !sibling_path(database, "-wal").exists() {
        return;
    }
    if let Ok(mut connection) = SqliteConnectOptions::new().filename(database).connect().await {
        let _ = sqlx::query("PRAGMA wal_checkpoint(TRUNCATE)").execute(&mut connection).await;
        // Closing the last connection removes the log.
        let _ = connection.close().await;
    }
}

/// Runs `put`, which replaces the database file. The old log is moved away first, because SQLite
/// would apply it to the new file, and moved back if `put` fails.
fn with_wal_moved_aside(
    database: &Path,
    put: impl FnOnce() -> Result<(), BackupError>,
) -> Result<(), BackupError> {
    let mut moved = Vec::new();
    let done = move_wal_aside(database, &mut moved).and_then(|()| put());
    for (log, aside) in &moved {
        match &done {
            // Harmless under this name if it cannot be removed.
            Ok(()) => drop(fs::remove_file(aside)),
            Err(_) => fs::rename(aside, log).map_err(io_error(log))?,
        }
    }
    done
}

/// Records each moved file: nothing else may ever be moved back as this database's log.
fn move_wal_aside(database: &Path, moved: &mut Vec<(PathBuf, PathBuf)>) -> Result<(), BackupError> {
    for suffix in ["-wal", "-shm"] {
        let (log, aside) =
            (sibling_path(database, suffix), sibling_path(database, &format!("{suffix}-former")));
        match fs::rename(&log, &aside) {
            Ok(()) => moved.push((log, aside)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(BackupError::Io(log, error)),
        }
    }
    Ok(())
}

fn io_error(path: &Path) -> impl Fn(io::Error) -> BackupError + '_ {
    move |error| BackupError::Io(path.to_owned(), error)
}

fn sqlite_file(url: &str, instead: &str) -> Result<PathBuf, BackupError> {
    if url.starts_with("postgres") {
        return Err(Refused(format!("the database is PostgreSQL: {instead}")));
    }
    crate::store::check_url(url)?;
    Ok(file::path(url)?)
}

/// Creates a synced copy beside `to`, for this user only. It is deleted unless it is persisted.
async fn copy_to_temporary_file(
    from: &mut SqliteConnection,
    to: &Path,
) -> Result<NamedTempFile, BackupError> {
    let copy = tempfile::Builder::new().prefix(".tollhouse-").tempfile_in(parent_folder(to));
    let copy = copy.map_err(io_error(to))?;
    let path =
        copy.path().to_str().ok_or_else(|| Refused(format!("{} is not UTF-8", to.display())))?;
    let vacuum = sqlx::query("VACUUM INTO $1").bind(path.to_owned());
    vacuum.execute(from).await.map_err(Error::from)?;
    copy.as_file().sync_all().map_err(io_error(to))?;
    Ok(copy)
}

/// Renames the copy atomically.
fn persist(copy: NamedTempFile, to: &Path, replace: bool) -> Result<(), BackupError> {
    let renamed = if replace { copy.persist(to) } else { copy.persist_noclobber(to) };
    renamed.map(drop).map_err(|error| io_error(to)(error.error))
}

/// Makes a new name durable.
fn sync_folder(of: &Path) -> Result<(), BackupError> {
    let synced = File::open(parent_folder(of)).and_then(|folder| folder.sync_all());
    synced.map_err(io_error(of))
}

pub(in crate::store) fn parent_folder(of: &Path) -> &Path {
    of.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// `at_rest` is only for files that are not written meanwhile.
pub(in crate::store) async fn open(file: &Path, at_rest: bool) -> Result<SqliteConnection, Error> {
    let options = SqliteConnectOptions::new().filename(file).read_only(true).immutable(at_rest);
    Ok(options.connect().await?)
}

/// Refuses a file that is damaged, not a Tollhouse database, or of a later version.
async fn check_database(connection: &mut SqliteConnection, file: &Path) -> Result<(), BackupError> {
    let shown = file.display();
    let found: String = sqlx::query_scalar("PRAGMA integrity_check(1)")
        .fetch_one(&mut *connection)
        .await
        .map_err(Error::from)?;
    if found != "ok" {
        return Err(Refused(format!("{shown} is damaged: {found}")));
    }
    let applied = schema::applied_in_sqlite(connection).await?;
    if applied.is_empty() {
        return Err(Refused(format!("{shown} is not a Tollhouse database")));
    }
    schema::count_missing(&crate::store::sqlite_schema(), &applied).map(drop).map_err(|error| {
        Refused(format!(
            "{shown} has another schema: {error}; use the version of Tollhouse that created it, or a later one"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Creates a database whose only row is in its log, as a killed host leaves it.
    async fn crashed_database(dir: &Path) -> PathBuf {
        let (live, dead) = (dir.join("live.db"), dir.join("dead.db"));
        let options = SqliteConnectOptions::new().filename(&live).create_if_missing(true);
        let mut host = options.pragma("journal_mode", "WAL").connect().await.unwrap();
        for sql in
            ["CREATE TABLE t (n)", "PRAGMA wal_checkpoint(TRUNCATE)", "INSERT INTO t VALUES (1)"]
        {
            sqlx::query(sql).execute(&mut host).await.unwrap();
        }
        for suffix in ["", "-wal"] {
            fs::copy(sibling_path(&live, suffix), sibling_path(&dead, suffix)).unwrap();
        }
        dead
    }

    async fn rows(database: &Path) -> i64 {
        let mut connection = open(database, false).await.unwrap();
        sqlx::query_scalar("SELECT COUNT(*) FROM t").fetch_one(&mut connection).await.unwrap()
    }

    fn fail() -> Result<(), BackupError> {
        Err(Refused("the disk is gone".to_owned()))
    }

    #[tokio::test]
    async fn a_failed_replacement_keeps_the_log() {
        let dir = tempfile::tempdir().unwrap();
        let database = crashed_database(dir.path()).await;
        let log = fs::read(sibling_path(&database, "-wal")).unwrap();
        assert!(!log.is_empty());
        with_wal_moved_aside(&database, fail).unwrap_err();
        assert_eq!(fs::read(sibling_path(&database, "-wal")).unwrap(), log);
        assert_eq!(rows(&database).await, 1);
        with_wal_moved_aside(&database, || Ok(())).unwrap();
        let left = fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name());
        assert_eq!(left.filter(|name| name.to_string_lossy().starts_with("dead.db")).count(), 1);
        // The leftover of another restore is not this database's log.
        fs::write(sibling_path(&database, "-wal-former"), "of another database").unwrap();
        with_wal_moved_aside(&database, fail).unwrap_err();
        assert!(!sibling_path(&database, "-wal").exists());
    }

    #[tokio::test]
    async fn the_log_is_merged_into_its_database() {
        let dir = tempfile::tempdir().unwrap();
        let database = crashed_database(dir.path()).await;
        checkpoint_wal(&database).await;
        assert!(!sibling_path(&database, "-wal").exists());
        assert_eq!(rows(&database).await, 1);
        // The log of a file that is not a database is ignored.
        fs::write(&database, "Dear reader").unwrap();
        fs::write(sibling_path(&database, "-wal"), "Yours").unwrap();
        checkpoint_wal(&database).await;
    }
}
