//! The databases of tests, on both engines.

use std::{io::Write, path::PathBuf, sync::Once};

use sqlx::{AssertSqlSafe, Connection};
use sqlx_postgres::PgConnection;
use sqlx_sqlite::SqliteConnection;
use tempfile::TempDir;
use tokio::sync::OnceCell;
use tollhouse_platform::{
    random::Random,
    store::{Store, StoreLimits},
};

#[derive(Clone)]
pub enum Engine {
    Sqlite,
    /// The URL of a server.
    Postgres(String),
}

/// Returns the URL of the PostgreSQL server for tests. Without one, the tests on PostgreSQL are
/// skipped, and a message on standard error reports that once.
pub fn postgres() -> Option<String> {
    static REPORTED: Once = Once::new();
    let server = std::env::var("TOLLHOUSE_TEST_POSTGRES").ok().filter(|url| !url.is_empty());
    if server.is_none() {
        REPORTED.call_once(|| {
            let text = "SKIPPED: tests on PostgreSQL; TOLLHOUSE_TEST_POSTGRES names no server\n";
            // The test runner captures `eprintln!`, but not this.
            let _ = std::io::stderr().write_all(text.as_bytes());
        });
    }
    server.map(without_tls)
}

/// Appends `sslmode=disable` unless the URL names a mode: the handshakes would take half the time of
/// the tests, because each reads the certificates of the system.
fn without_tls(mut url: String) -> String {
    if !url.contains("sslmode=") {
        let join = if url.contains('?') { '&' } else { '?' };
        url.push(join);
        url.push_str("sslmode=disable");
    }
    url
}

const MAX_DROP_ATTEMPTS: usize = 10;

/// The database of one test: a file in a temporary folder, or a schema that
/// [`Database::drop_schema`] drops.
pub struct Database {
    pub url: String,
    schema: Option<(String, String)>,
    pub dir: TempDir,
}

impl Database {
    /// Creates an empty database.
    pub async fn create(engine: Engine) -> Database {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let Engine::Postgres(server) = engine else {
            let url = format!("sqlite://{}", sqlite_file(&dir).display());
            return Database { url, schema: None, dir };
        };
        let schema = Random::system().token("t");
        run_sql(&server, format!("CREATE SCHEMA {schema}")).await;
        let url = format!("{server}&options[search_path]={schema}");
        Database { url, schema: Some((server, schema)), dir }
    }

    /// Creates a database for a host that migrates it. On SQLite it is a copy of a migrated one:
    /// migrations would take a seventh of the CPU time of the tests.
    pub async fn create_for_host(engine: Engine) -> Database {
        let database = Database::create(engine).await;
        if database.schema.is_none() {
            let copied = std::fs::write(sqlite_file(&database.dir), migrated_sqlite().await);
            copied.expect("a file in a temporary folder");
        }
        database
    }

    /// An existing database, which its creator drops.
    pub fn existing(url: String) -> Database {
        Database { url, schema: None, dir: tempfile::tempdir().expect("a temporary folder") }
    }

    /// Retries after a deadlock: a transaction of a stopped host may still end meanwhile.
    pub async fn drop_schema(&self) {
        let Some((server, schema)) = &self.schema else { return };
        let sql = format!("DROP SCHEMA {schema} CASCADE");
        for _ in 0..MAX_DROP_ATTEMPTS {
            match try_sql(server, sql.clone()).await {
                Err(error) if is_deadlock(&error) => {}
                dropped => return dropped.expect("the schema of the test"),
            }
        }
        panic!("{MAX_DROP_ATTEMPTS} deadlocks while dropping {schema}");
    }
}

fn sqlite_file(dir: &TempDir) -> PathBuf {
    dir.path().join("test.db")
}

/// Returns the file of a migrated SQLite database, which all tests share.
async fn migrated_sqlite() -> &'static [u8] {
    static MIGRATED: OnceCell<Vec<u8>> = OnceCell::const_new();
    let migrate = async || {
        let (database, limits) = (Database::create(Engine::Sqlite).await, StoreLimits::default());
        let store = Store::open(&database.url, limits, Random::system()).await;
        let _store = store.expect("a migrated database");
        let copy = database.dir.path().join("copy.db");
        let mut connection = SqliteConnection::connect(&database.url).await.expect("a database");
        let sql = format!("VACUUM INTO '{}'", copy.display());
        sqlx::query(AssertSqlSafe(sql)).execute(&mut connection).await.expect("a copy");
        std::fs::read(copy).expect("a copy")
    };
    MIGRATED.get_or_init(migrate).await
}

pub async fn run_sql(server: &str, sql: String) {
    try_sql(server, sql).await.expect("a valid statement");
}

async fn try_sql(server: &str, sql: String) -> sqlx::Result<()> {
    let mut connection = PgConnection::connect(server).await?;
    sqlx::query(AssertSqlSafe(sql)).execute(&mut connection).await?;
    connection.close().await
}

fn is_deadlock(error: &sqlx::Error) -> bool {
    error.as_database_error().and_then(|error| error.code()).is_some_and(|code| code == "40P01")
}
