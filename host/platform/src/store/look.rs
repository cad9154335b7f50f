//! Read-only checks of a database.

use std::{str::FromStr, time::Duration};

use sqlx::{
    Connection as _,
    postgres::{PgConnectOptions, PgConnection},
};
use tokio::time::timeout;

use super::{
    Error, Result, Role, check_url, error::Trouble, postgres_schema, schema, sqlite_schema,
};
use crate::store::{
    postgres::roles,
    sqlite::{
        backup,
        file::{self, not_writable},
    },
};

/// Timeout of a check.
const PATIENCE: Duration = Duration::from_secs(10);

/// Returns the number of missing migrations of the database at `url`. Fails if it cannot be opened
/// or created, or belongs to another version.
pub async fn missing_migrations(url: &str) -> Result<usize> {
    check_url(url)?;
    in_time(async {
        match url.starts_with("postgres") {
            true => in_postgres(url).await,
            false => in_sqlite(url).await,
        }
    })
    .await
}

/// Fails if [`Store::open_migrated`](super::Store::open_migrated) would refuse the database.
pub async fn check_server(url: &str, role: Role) -> Result<()> {
    in_time(roles::check(url, &postgres_schema(), role)).await
}

async fn in_time<T>(look: impl Future<Output = Result<T>>) -> Result<T> {
    let late = |_| Error::Unavailable {
        trouble: Trouble::Unreachable,
        cause: format!("there was no response within {} s", PATIENCE.as_secs()),
    };
    timeout(PATIENCE, look).await.map_err(late)?
}

async fn in_postgres(url: &str) -> Result<usize> {
    let options = PgConnectOptions::from_str(url)?;
    let mut connection = PgConnection::connect_with(&options).await?;
    let applied = schema::in_postgres(&mut connection).await?;
    connection.close().await?;
    Ok(schema::missing(&postgres_schema(), &applied)?)
}

async fn in_sqlite(url: &str) -> Result<usize> {
    let path = file::path(url)?;
    if !path.exists() {
        let folder = backup::folder(&path);
        tempfile::tempfile_in(folder).map_err(|error| not_writable(&path, &error))?;
        return Ok(sqlite_schema().iter().count());
    }
    let mut connection = backup::open(&path, false).await?;
    let applied = schema::in_sqlite(&mut connection).await?;
    connection.close().await?;
    Ok(schema::missing(&sqlite_schema(), &applied)?)
}
