//! Read-only checks of a database.

use std::time::Duration;

use sqlx::Connection as _;
use tokio::time::timeout;

use super::{
    Error, Result, RolePolicy, UnavailableReason, check_url,
    postgres::roles,
    postgres_schema, schema,
    sqlite::{
        backup,
        file::{self, not_writable},
    },
    sqlite_schema,
};

/// Timeout of a check.
const CHECK_TIMEOUT: Duration = Duration::from_secs(10);

/// Returns the number of missing migrations of the database at `url`. Fails if it cannot be opened
/// or created, or belongs to another version.
pub async fn missing_migrations(url: &str) -> Result<usize> {
    check_url(url)?;
    with_timeout(async {
        if url.starts_with("sqlite") {
            return missing_in_sqlite(url).await;
        }
        let (connection, missing) = roles::count_missing(url, &postgres_schema()).await?;
        connection.close().await?;
        Ok(missing)
    })
    .await
}

/// Fails if [`Store::open_migrated`](super::Store::open_migrated) would refuse the database.
pub async fn check_server(url: &str, role: RolePolicy) -> Result<()> {
    with_timeout(roles::check(url, &postgres_schema(), role)).await
}

async fn with_timeout<T>(look: impl Future<Output = Result<T>>) -> Result<T> {
    let late = format!("there was no response within {} s", CHECK_TIMEOUT.as_secs());
    let late = |_| Error::unavailable(UnavailableReason::Unreachable, late);
    timeout(CHECK_TIMEOUT, look).await.map_err(late)?
}

async fn missing_in_sqlite(url: &str) -> Result<usize> {
    let path = file::path(url)?;
    if !path.exists() {
        let folder = backup::parent_folder(&path);
        tempfile::tempfile_in(folder).map_err(|error| not_writable(&path, &error))?;
        return Ok(sqlite_schema().iter().count());
    }
    let mut connection = backup::open(&path, false).await?;
    let applied = schema::applied_in_sqlite(&mut connection).await?;
    connection.close().await?;
    Ok(schema::count_missing(&sqlite_schema(), &applied)?)
}
