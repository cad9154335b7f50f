//! Looking at a database without changing anything of it.

use std::{str::FromStr, time::Duration};

use sqlx::{
    Connection as _,
    postgres::{PgConnectOptions, PgConnection},
};
use tokio::time::timeout;

use super::{
    Error, Result, backup, check_url,
    error::Trouble,
    file::{self, not_writable},
    postgres_schema, sqlite_schema,
};

/// How long a server may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// How many migrations the database at `url` lacks. Fails when it cannot be opened, or could not be made.
pub async fn missing_migrations(url: &str) -> Result<usize> {
    check_url(url)?;
    let look = async {
        match url.starts_with("postgres") {
            true => in_postgres(url).await,
            false => in_sqlite(url).await,
        }
    };
    let late = |_| Error::Unavailable {
        trouble: Trouble::Unreachable,
        cause: format!("there was no answer in {} s", PATIENCE.as_secs()),
    };
    timeout(PATIENCE, look).await.map_err(late)?
}

async fn in_postgres(url: &str) -> Result<usize> {
    let all = postgres_schema().iter().count();
    let options = PgConnectOptions::from_str(url)?;
    let mut connection = PgConnection::connect_with(&options).await?;
    let there = sqlx::query_as("SELECT to_regclass('_sqlx_migrations') IS NOT NULL");
    let (there,): (bool,) = there.fetch_one(&mut connection).await?;
    let applied: i64 = match there {
        true => {
            let applied = sqlx::query_as("SELECT COUNT(*) FROM _sqlx_migrations");
            let (applied,) = applied.fetch_one(&mut connection).await?;
            applied
        }
        false => 0,
    };
    connection.close().await?;
    Ok(all.saturating_sub(usize::try_from(applied).unwrap_or(0)))
}

async fn in_sqlite(url: &str) -> Result<usize> {
    let all = sqlite_schema().iter().count();
    let path = file::path(url)?;
    if !path.exists() {
        let folder = backup::folder(&path);
        tempfile::tempfile_in(folder).map_err(|error| not_writable(&path, &error))?;
        return Ok(all);
    }
    let mut connection = backup::open(&path, false).await?;
    let there = "SELECT COUNT(*) FROM sqlite_master WHERE name = '_sqlx_migrations'";
    let (there,): (i64,) = sqlx::query_as(there).fetch_one(&mut connection).await?;
    let applied: i64 = match there {
        0 => 0,
        _ => {
            let applied = sqlx::query_as("SELECT COUNT(*) FROM _sqlx_migrations");
            let (applied,) = applied.fetch_one(&mut connection).await?;
            applied
        }
    };
    connection.close().await?;
    Ok(all.saturating_sub(usize::try_from(applied).unwrap_or(0)))
}
