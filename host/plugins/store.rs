//! The registry's rows: which component serves under which name.

use crate::{
    clock::Timestamp,
    store::{FromRow, Result, Tx},
};

#[derive(Clone, Debug, PartialEq, FromRow)]
pub struct PluginRow {
    pub name: String,
    pub digest: String,
    pub version: String,
    pub state: String,
    pub installed_at: Timestamp,
}

/// Makes a component the one that serves under its name; the former one is retired in the same transaction.
pub async fn activate(
    tx: &mut Tx,
    name: &str,
    version: &str,
    digest: &str,
    wasm: &[u8],
    now: Timestamp,
) -> Result<()> {
    tx.sql(
        "INSERT INTO plugin_components (digest, wasm, created_at) VALUES ($1, $2, $3)
         ON CONFLICT (digest) DO NOTHING",
    )
    .bind(digest)
    .bind(wasm)
    .bind(now)
    .run()
    .await?;
    tx.sql("UPDATE plugins SET state = 'retired' WHERE name = $1 AND state = 'active'")
        .bind(name)
        .run()
        .await?;
    tx.sql(
        "INSERT INTO plugins (name, digest, version, state, installed_at)
         VALUES ($1, $2, $3, 'active', $4)
         ON CONFLICT (name, digest) DO UPDATE SET state = 'active', installed_at = excluded.installed_at",
    )
    .bind(name)
    .bind(digest)
    .bind(version)
    .bind(now)
    .run()
    .await?;
    Ok(())
}

pub async fn active(tx: &mut Tx) -> Result<Vec<PluginRow>> {
    tx.sql("SELECT * FROM plugins WHERE state = 'active' ORDER BY name").all().await
}

/// Every version of every plugin, newest first.
pub async fn all(tx: &mut Tx) -> Result<Vec<PluginRow>> {
    tx.sql("SELECT * FROM plugins ORDER BY name, installed_at DESC, digest").all().await
}

/// Digests of all that was ever installed under a name.
pub async fn digests(tx: &mut Tx, name: &str) -> Result<Vec<(String,)>> {
    tx.sql("SELECT digest FROM plugins WHERE name = $1 ORDER BY installed_at DESC")
        .bind(name)
        .all()
        .await
}

pub async fn component(tx: &mut Tx, digest: &str) -> Result<Option<(Vec<u8>,)>> {
    tx.sql("SELECT wasm FROM plugin_components WHERE digest = $1").bind(digest).optional().await
}
