//! Compares the applied migrations of a database with those of this version.

use sqlx::migrate::{MigrateError, Migrator};
use sqlx_postgres::PgConnection;
use sqlx_sqlite::SqliteConnection;

use super::Result;

/// A migration as the database recorded it: version, checksum, and whether it succeeded.
pub(super) type AppliedMigration = (i64, Vec<u8>, bool);

const SELECT_APPLIED: &str =
    "SELECT version, checksum, success FROM _sqlx_migrations ORDER BY version";

/// Returns nothing if the tables do not exist, or if the role may not read them.
pub(super) async fn applied_in_postgres(
    connection: &mut PgConnection,
) -> Result<Vec<AppliedMigration>> {
    let readable =
        "SELECT COALESCE(has_table_privilege(to_regclass('_sqlx_migrations'), 'SELECT'), FALSE)";
    let readable: bool = sqlx::query_scalar(readable).fetch_one(&mut *connection).await?;
    if !readable {
        return Ok(Vec::new());
    }
    Ok(sqlx::query_as(SELECT_APPLIED).fetch_all(connection).await?)
}

pub(super) async fn applied_in_sqlite(
    connection: &mut SqliteConnection,
) -> Result<Vec<AppliedMigration>> {
    let there = "SELECT COUNT(*) FROM sqlite_master WHERE name = '_sqlx_migrations'";
    let there: i64 = sqlx::query_scalar(there).fetch_one(&mut *connection).await?;
    if there == 0 {
        return Ok(Vec::new());
    }
    Ok(sqlx::query_as(SELECT_APPLIED).fetch_all(connection).await?)
}

/// Returns the number of missing migrations. Fails if an applied one is unknown, differs or failed.
pub(super) fn count_missing(
    schema: &Migrator,
    applied: &[AppliedMigration],
) -> Result<usize, MigrateError> {
    for (version, checksum, success) in applied {
        let known = schema.iter().find(|migration| migration.version == *version);
        let known = known.ok_or(MigrateError::VersionMissing(*version))?;
        if !success {
            return Err(MigrateError::Dirty(*version));
        }
        if *known.checksum != checksum[..] {
            return Err(MigrateError::VersionMismatch(*version));
        }
    }
    Ok(schema.iter().count() - applied.len())
}
