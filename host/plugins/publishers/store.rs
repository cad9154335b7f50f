//! The rows of publishers' keys.

use crate::{
    clock::Timestamp,
    store::{FromRow, Result, Tx},
};

#[derive(Debug, FromRow)]
pub struct KeyRow {
    pub name: String,
    /// As [`PublicKey`](super::PublicKey) is written in one line.
    pub key: String,
    pub added_at: Timestamp,
}

pub async fn all(tx: &mut Tx) -> Result<Vec<KeyRow>> {
    tx.sql("SELECT name, key, added_at FROM plugin_publishers ORDER BY name, added_at, key")
        .all()
        .await
}

pub async fn of_publisher(tx: &mut Tx, name: &str) -> Result<Vec<KeyRow>> {
    tx.sql(
        "SELECT name, key, added_at FROM plugin_publishers WHERE name = $1 ORDER BY added_at, key",
    )
    .bind(name)
    .all()
    .await
}

/// Keeps a key, unless it is kept already; the name of its publisher, which may be another.
pub async fn add(tx: &mut Tx, name: &str, key: &str, now: Timestamp) -> Result<String> {
    let (owner,): (String,) = tx
        .sql(
            "INSERT INTO plugin_publishers (name, key, added_at) VALUES ($1, $2, $3)
             ON CONFLICT (key) DO UPDATE SET key = excluded.key
             RETURNING name",
        )
        .bind(name)
        .bind(key)
        .bind(now)
        .one()
        .await?;
    Ok(owner)
}

/// Removes a key, which goes on counting for what was installed before.
pub async fn remove(tx: &mut Tx, name: &str, key: &str, now: Timestamp) -> Result<()> {
    tx.sql(
        "INSERT INTO plugin_publishers_gone (key, name, added_at, removed_at)
         SELECT key, name, added_at, $3 FROM plugin_publishers WHERE name = $1 AND key = $2
         ON CONFLICT (key) DO UPDATE SET name = excluded.name, added_at = excluded.added_at,
             removed_at = excluded.removed_at",
    )
    .bind(name)
    .bind(key)
    .bind(now)
    .run()
    .await?;
    tx.sql("DELETE FROM plugin_publishers WHERE name = $1 AND key = $2")
        .bind(name)
        .bind(key)
        .run()
        .await?;
    Ok(())
}

/// Keys that are trusted, or were removed at this time or later.
pub async fn trusted_since(tx: &mut Tx, since: Timestamp) -> Result<Vec<KeyRow>> {
    tx.sql(
        "SELECT name, key, added_at FROM plugin_publishers
         UNION ALL SELECT name, key, added_at FROM plugin_publishers_gone WHERE removed_at >= $1",
    )
    .bind(since)
    .all()
    .await
}
