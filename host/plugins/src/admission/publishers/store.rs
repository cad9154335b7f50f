//! SQL for publishers' keys.

use crate::prelude::*;
use tollhouse_platform::store::{FromRow, Result, params};

#[derive(Debug, FromRow)]
pub struct PublisherKeyRow {
    pub name: String,
    /// One-line text of the [`PublicKey`](super::PublicKey).
    pub key: String,
    pub added_at: Timestamp,
}

pub async fn list(tx: &mut Tx) -> Result<Vec<PublisherKeyRow>> {
    tx.sql("SELECT name, key, added_at FROM plugin_publishers ORDER BY name, added_at, key")
        .all()
        .await
}

pub async fn list_by_publisher(tx: &mut Tx, name: &str) -> Result<Vec<PublisherKeyRow>> {
    tx.sql(
        "SELECT name, key, added_at FROM plugin_publishers WHERE name = $1 ORDER BY added_at,
             key",
    )
    .bind(name)
    .all()
    .await
}

/// Adds a key unless it exists. Returns the name of its publisher, which may differ from `name`.
pub async fn insert(tx: &mut Tx, name: &str, key: &str, now: Timestamp) -> Result<String> {
    tx.sql(
        "INSERT INTO plugin_publishers (name, key, added_at) VALUES ($1, $2, $3)
         ON CONFLICT (key) DO UPDATE SET key = excluded.key
         RETURNING name",
    )
    .params(params![name, key, now])
    .value()
    .await
}

/// Removes a key. It remains valid for components that were installed before.
pub async fn delete(tx: &mut Tx, name: &str, key: &str, now: Timestamp) -> Result<()> {
    tx.sql(
        "INSERT INTO plugin_publishers_gone (key, name, added_at, removed_at)
         SELECT key, name, added_at, $3 FROM plugin_publishers WHERE name = $1 AND key = $2
         ON CONFLICT (key) DO UPDATE SET name = excluded.name, added_at = excluded.added_at,
             removed_at = excluded.removed_at",
    )
    .params(params![name, key, now])
    .execute()
    .await?;
    tx.sql("DELETE FROM plugin_publishers WHERE name = $1 AND key = $2")
        .params(params![name, key])
        .execute()
        .await
}

/// Returns the keys that are trusted or were removed at `since` or later.
pub async fn list_trusted_since(tx: &mut Tx, since: Timestamp) -> Result<Vec<PublisherKeyRow>> {
    tx.sql(
        "SELECT name, key, added_at FROM plugin_publishers
         UNION ALL SELECT name, key, added_at FROM plugin_publishers_gone
             WHERE removed_at >= $1",
    )
    .bind(since)
    .all()
    .await
}
