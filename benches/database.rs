//! Temporary databases for measurements.

use sqlx::{AssertSqlSafe, Connection};
use sqlx_postgres::PgConnection;
use tempfile::TempDir;
use tokio::runtime::Runtime;
use tollhouse_platform::random::Random;

pub struct Database {
    pub engine: &'static str,
    pub url: String,
    pub dir: TempDir,
    /// Server URL and name of the schema to drop.
    schema: Option<(String, String)>,
}

/// Creates a database of each engine. Prints a note if there is no PostgreSQL server.
pub fn create_for_each_engine(runtime: &Runtime) -> Vec<Database> {
    let server = std::env::var("TOLLHOUSE_TEST_POSTGRES").ok().filter(|url| !url.is_empty());
    match server {
        Some(server) => vec![Database::sqlite(), runtime.block_on(Database::postgres(server))],
        None => {
            eprintln!("SKIPPED: PostgreSQL; TOLLHOUSE_TEST_POSTGRES names no server");
            vec![Database::sqlite()]
        }
    }
}

impl Database {
    fn sqlite() -> Database {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let url = format!("sqlite://{}", dir.path().join("bench.db").display());
        Database { engine: "sqlite", url, dir, schema: None }
    }

    async fn postgres(server: String) -> Database {
        let schema = Random::system().token("b");
        run_sql(&server, format!("CREATE SCHEMA {schema}")).await;
        let join = if server.contains('?') { '&' } else { '?' };
        let url = format!("{server}{join}options[search_path]={schema}");
        let dir = tempfile::tempdir().expect("a temporary folder");
        Database { engine: "postgres", url, dir, schema: Some((server, schema)) }
    }

    /// Runs what autovacuum would run soon: without statistics PostgreSQL plans badly.
    pub async fn vacuum(&self) {
        if self.schema.is_some() {
            run_sql(&self.url, "VACUUM (ANALYZE)".to_owned()).await;
        }
    }

    pub fn drop_schema(self, runtime: &Runtime) {
        if let Some((server, schema)) = &self.schema {
            runtime.block_on(run_sql(server, format!("DROP SCHEMA {schema} CASCADE")));
        }
    }
}

async fn run_sql(server: &str, sql: String) {
    let mut connection = PgConnection::connect(server).await.expect("the PostgreSQL server");
    sqlx::query(AssertSqlSafe(sql)).execute(&mut connection).await.expect("a statement of ours");
    connection.close().await.expect("a connection of ours");
}
