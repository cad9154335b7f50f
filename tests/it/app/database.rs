//! The databases of tests, on both engines.

use std::{
    io::Write,
    path::PathBuf,
    sync::Once,
    time::{Duration, SystemTime},
};

use reqwest::Url;
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

/// The database of one test: a file in a temporary folder, or one of PostgreSQL, which
/// [`Database::drop`] drops.
pub struct Database {
    pub url: String,
    /// The server, and the name of the database there.
    on_server: Option<(String, String)>,
    pub dir: TempDir,
}

impl Database {
    /// Creates an empty database.
    pub async fn create(engine: Engine) -> Database {
        match engine {
            Engine::Sqlite => Database::file(),
            Engine::Postgres(server) => Database::from_template(server, "template0").await,
        }
    }

    /// Creates a migrated database for a host, as a copy: migrations would take a seventh of the CPU
    /// time of the tests.
    pub async fn create_for_host(engine: Engine) -> Database {
        match engine {
            Engine::Sqlite => {
                let database = Database::file();
                let copied = std::fs::write(sqlite_file(&database.dir), migrated_sqlite().await);
                copied.expect("a file in a temporary folder");
                database
            }
            Engine::Postgres(server) => {
                let template = migrated_postgres(&server).await;
                Database::from_template(server, template).await
            }
        }
    }

    fn file() -> Database {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let url = format!("sqlite://{}", sqlite_file(&dir).display());
        Database { url, on_server: None, dir }
    }

    async fn from_template(server: String, template: &str) -> Database {
        let name = new_name();
        run_sql(&server, format!("CREATE DATABASE {name} TEMPLATE {template}")).await;
        let mut url = Url::parse(&server).expect("the URL of a server");
        url.set_path(&name);
        let dir = tempfile::tempdir().expect("a temporary folder");
        Database { url: url.into(), on_server: Some((server, name)), dir }
    }

    /// An existing database, which its creator drops.
    pub fn existing(url: String) -> Database {
        let dir = tempfile::tempdir().expect("a temporary folder");
        Database { url, on_server: None, dir }
    }

    /// Drops a database of PostgreSQL, with the connections that stopped hosts have left.
    pub async fn drop(&self) {
        if let Some((server, name)) = &self.on_server {
            run_sql(server, format!("DROP DATABASE {name} WITH (FORCE)")).await;
        }
    }
}

/// The prefix of the databases of tests on a server.
const PREFIX: &str = "tollhouse_test_";
/// Age from which a database on a server is left over from tests that ended without dropping it.
const MAX_AGE: Duration = Duration::from_hours(12);

/// Returns a new name, with the present time.
fn new_name() -> String {
    let token = Random::system().token("").to_lowercase();
    format!("{PREFIX}{}_{}", now().as_secs(), &token[..16])
}

fn now() -> Duration {
    SystemTime::UNIX_EPOCH.elapsed().expect("a time after 1970")
}

/// Returns the name of a migrated database of a server, which all tests copy, and which a later run
/// drops.
async fn migrated_postgres(server: &str) -> &'static str {
    static MIGRATED: OnceCell<String> = OnceCell::const_new();
    let migrate = async || {
        drop_old(server).await;
        let database = Database::create(Engine::Postgres(server.to_owned())).await;
        migrate(&database).await;
        database.on_server.expect("a database on a server").1
    };
    MIGRATED.get_or_init(migrate).await
}

/// Drops the databases of tests that failed, and the templates of earlier runs.
async fn drop_old(server: &str) {
    let mut connection = PgConnection::connect(server).await.expect("a server");
    let names = sqlx::query_scalar("SELECT datname FROM pg_database WHERE datname LIKE $1");
    let names = names.bind(format!("{PREFIX}%")).fetch_all(&mut connection).await;
    let names: Vec<String> = names.expect("the databases");
    for name in names {
        let created = name[PREFIX.len()..].split_once('_').and_then(|(time, _)| time.parse().ok());
        if created.is_some_and(|created| Duration::from_secs(created) + MAX_AGE < now()) {
            // Another process may drop it, too.
            run_sql(server, format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)")).await;
        }
    }
}

/// Applies the migrations. The connections close shortly afterwards; making a copy waits for that.
async fn migrate(database: &Database) {
    let store = Store::open(&database.url, StoreLimits::default(), Random::system()).await;
    drop(store.expect("a migrated database"));
}

fn sqlite_file(dir: &TempDir) -> PathBuf {
    dir.path().join("test.db")
}

/// Returns the file of a migrated SQLite database, which all tests share.
async fn migrated_sqlite() -> &'static [u8] {
    static MIGRATED: OnceCell<Vec<u8>> = OnceCell::const_new();
    let migrate = async || {
        let database = Database::create(Engine::Sqlite).await;
        migrate(&database).await;
        let copy = database.dir.path().join("copy.db");
        let mut connection = SqliteConnection::connect(&database.url).await.expect("a database");
        let sql = format!("VACUUM INTO '{}'", copy.display());
        sqlx::query(AssertSqlSafe(sql)).execute(&mut connection).await.expect("a copy");
        std::fs::read(copy).expect("a copy")
    };
    MIGRATED.get_or_init(migrate).await
}

pub async fn run_sql(server: &str, sql: String) {
    let mut connection = PgConnection::connect(server).await.expect("the PostgreSQL server");
    let ran = sqlx::query(AssertSqlSafe(sql)).execute(&mut connection).await;
    ran.expect("a valid statement");
    connection.close().await.expect("a closed connection");
}
