//! Copies of a SQLite database: taken while a host serves, put back while none does.
//!
//! What a copy holds of secrets is sealed, as in the database. PostgreSQL has tools of its own.

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
};

use sqlx::{ConnectOptions, Connection as _, SqliteConnection, sqlite::SqliteConnectOptions};
use tempfile::NamedTempFile;

use super::{
    Error,
    file::{self, InUse, beside, not_writable},
    schema,
};

/// Why a copy was not made or not put back; the text says what to do. Nothing was changed, unless all was done and the folder
/// could not be brought to the disk.
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
    fs::metadata(&database).map_err(|error| not_writable(&database, &error))?;
    if to.exists() {
        return Err(refused(format!("{} exists: name another file", to.display())));
    }
    let _in_use = InUse::shared(&database)?;
    let copy = copy(&mut open(&database, false).await?, to).await?;
    check(&mut open(copy.path(), true).await?, copy.path()).await?;
    appear(copy, to, false)?;
    sync_folder(to)
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
    fold_log(&database).await;
    in_place_of(&database, || appear(copy, &database, replace))?;
    sync_folder(&database)
}

/// Brings the log of a database that is to be replaced into its file, so that it is whole by itself from here on. One that is too
/// damaged for that is no worse off.
async fn fold_log(database: &Path) {
    if !beside(database, "-wal").exists() {
        return;
    }
    if let Ok(mut connection) = SqliteConnectOptions::new().filename(database).connect().await {
        let _ = sqlx::query("PRAGMA wal_checkpoint(TRUNCATE)").execute(&mut connection).await;
        // The last connection takes the log away.
        let _ = connection.close().await;
    }
}

/// Runs `put`, which puts another file in the place of the database. What SQLite would take for that file's log is out of its way
/// meanwhile, and back in its place when `put` fails.
fn in_place_of(
    database: &Path,
    put: impl FnOnce() -> Result<(), BackupError>,
) -> Result<(), BackupError> {
    let mut moved = Vec::new();
    let done = move_logs(database, &mut moved).and_then(|()| put());
    for (log, aside) in &moved {
        match &done {
            // What cannot be removed under this name does no harm.
            Ok(()) => drop(fs::remove_file(aside)),
            Err(_) => {
                fs::rename(aside, log).map_err(|error| BackupError::Io(log.clone(), error))?
            }
        }
    }
    done
}

/// Notes each file that was moved, and where to: nothing else may ever come back as this database's log.
fn move_logs(database: &Path, moved: &mut Vec<(PathBuf, PathBuf)>) -> Result<(), BackupError> {
    for suffix in ["-wal", "-shm"] {
        let (log, aside) =
            (beside(database, suffix), beside(database, &format!("{suffix}-former")));
        match fs::rename(&log, &aside) {
            Ok(()) => moved.push((log, aside)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(BackupError::Io(log, error)),
        }
    }
    Ok(())
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

/// The copy takes its name at once and whole, or not at all.
fn appear(copy: NamedTempFile, to: &Path, replace: bool) -> Result<(), BackupError> {
    let at = |error| BackupError::Io(to.to_owned(), error);
    if replace {
        copy.persist(to).map_err(|error| at(error.error))?;
    } else {
        copy.persist_noclobber(to).map_err(|error| at(error.error))?;
    }
    Ok(())
}

/// A name lasts once its folder is on the disk.
fn sync_folder(of: &Path) -> Result<(), BackupError> {
    let synced = File::open(folder(of)).and_then(|folder| folder.sync_all());
    synced.map_err(|error| BackupError::Io(of.to_owned(), error))
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
    let applied = schema::in_sqlite(connection).await?;
    if applied.is_empty() {
        return Err(refused(format!("{shown} is no database of Tollhouse")));
    }
    schema::missing(&super::sqlite_schema(), &applied).map(drop).map_err(|error| {
        refused(format!(
            "{shown} has another schema: {error}; use the Tollhouse that wrote it, or a later one"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A database of one row that stands in its log only, as a host leaves it that is killed.
    async fn killed(dir: &Path) -> PathBuf {
        let (live, dead) = (dir.join("live.db"), dir.join("dead.db"));
        let options = SqliteConnectOptions::new().filename(&live).create_if_missing(true);
        let mut host = options.pragma("journal_mode", "WAL").connect().await.unwrap();
        for sql in
            ["CREATE TABLE t (n)", "PRAGMA wal_checkpoint(TRUNCATE)", "INSERT INTO t VALUES (1)"]
        {
            sqlx::query(sql).execute(&mut host).await.unwrap();
        }
        for suffix in ["", "-wal"] {
            fs::copy(beside(&live, suffix), beside(&dead, suffix)).unwrap();
        }
        dead
    }

    async fn rows(database: &Path) -> i64 {
        let mut connection = open(database, false).await.unwrap();
        let (rows,) =
            sqlx::query_as("SELECT COUNT(*) FROM t").fetch_one(&mut connection).await.unwrap();
        rows
    }

    fn fail() -> Result<(), BackupError> {
        Err(refused("the disk is gone".to_owned()))
    }

    #[tokio::test]
    async fn a_database_that_is_not_replaced_keeps_its_log() {
        let dir = tempfile::tempdir().unwrap();
        let database = killed(dir.path()).await;
        let log = fs::read(beside(&database, "-wal")).unwrap();
        assert!(!log.is_empty());
        in_place_of(&database, fail).unwrap_err();
        assert_eq!(fs::read(beside(&database, "-wal")).unwrap(), log);
        assert_eq!(rows(&database).await, 1);
        in_place_of(&database, || Ok(())).unwrap();
        let left = fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name());
        assert_eq!(left.filter(|name| name.to_string_lossy().starts_with("dead.db")).count(), 1);
        // What another restore has left behind is nobody's log.
        fs::write(beside(&database, "-wal-former"), "of another database").unwrap();
        in_place_of(&database, fail).unwrap_err();
        assert!(!beside(&database, "-wal").exists());
    }

    #[tokio::test]
    async fn a_log_is_brought_into_its_database_before_that_is_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let database = killed(dir.path()).await;
        fold_log(&database).await;
        assert!(!beside(&database, "-wal").exists());
        assert_eq!(rows(&database).await, 1);
        // What is no database has a log that nobody can read.
        fs::write(&database, "Dear reader").unwrap();
        fs::write(beside(&database, "-wal"), "Yours").unwrap();
        fold_log(&database).await;
    }
}
