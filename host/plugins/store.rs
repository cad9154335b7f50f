//! The registry's rows: which versions of which plugins there are, and which serve whom.

use super::{
    Kind,
    capabilities::Capabilities,
    versions::{Share, State, Version},
};
use crate::{
    clock::Timestamp,
    store::{FromRow, Json, Result, Tx},
};

/// What hosts that follow the registry listen for.
pub const CHANGED: &str = "tollhouse_plugins";

#[derive(Clone, Debug, PartialEq, FromRow)]
pub struct PluginRow {
    pub name: String,
    pub digest: String,
    pub version: String,
    /// Who signed it; none: nobody.
    pub publisher: Option<String>,
    /// Its signature by a trusted publisher, in hexadecimal; none: there was none; empty: it was not kept.
    pub signature: Option<String>,
    pub state: State,
    /// What an operator granted; none: all that it asks for.
    pub granted: Option<Json<Capabilities>>,
    /// Of a canary: 0 to 100.
    pub percent: i64,
    pub companies: Json<Vec<String>>,
    pub installed_at: Timestamp,
    pub active_at: Option<Timestamp>,
    /// When it first served anybody; none: never.
    pub served_at: Option<Timestamp>,
    /// Since when it is called no more; none: it is.
    pub quarantined_at: Option<Timestamp>,
}

impl PluginRow {
    #[must_use]
    pub fn share(&self) -> Share {
        let percent = u8::try_from(self.percent).unwrap_or(0);
        Share { percent, companies: self.companies.0.clone() }
    }

    #[must_use]
    pub fn life(&self) -> Version {
        Version {
            digest: self.digest.clone(),
            state: self.state,
            share: self.share(),
            active_at: self.active_at,
        }
    }
}

/// Keeps a component and what was granted to it; one that is there already keeps its life, and takes the grant and the signature.
pub async fn insert(tx: &mut Tx, row: &PluginRow, wasm: &[u8]) -> Result<()> {
    tx.sql(
        "INSERT INTO plugin_components (digest, wasm, created_at) VALUES ($1, $2, $3)
         ON CONFLICT (digest) DO NOTHING",
    )
    .bind(&row.digest)
    .bind(wasm)
    .bind(row.installed_at)
    .run()
    .await?;
    tx.sql(
        "INSERT INTO plugin_versions (name, digest, version, publisher, state, granted, companies, installed_at, signature)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
         ON CONFLICT (name, digest) DO UPDATE SET granted = excluded.granted, publisher = excluded.publisher,
             signature = COALESCE(excluded.signature, plugin_versions.signature),
             state = CASE plugin_versions.state WHEN 'waiting' THEN excluded.state ELSE plugin_versions.state END",
    )
    .bind(&row.name)
    .bind(&row.digest)
    .bind(&row.version)
    .bind(&row.publisher)
    .bind(row.state)
    .bind(&row.granted)
    .bind(&row.companies)
    .bind(row.installed_at)
    .bind(&row.signature)
    .run()
    .await?;
    Ok(())
}

/// Every version of a plugin, newest first; nobody else changes or adds one until the transaction ends.
pub async fn lock(tx: &mut Tx, name: &str) -> Result<Vec<PluginRow>> {
    tx.sql(
        "INSERT INTO plugin_names (name) VALUES ($1)
         ON CONFLICT (name) DO UPDATE SET name = excluded.name",
    )
    .bind(name)
    .run()
    .await?;
    versions(tx, name).await
}

/// Every version of a plugin, newest first.
pub async fn versions(tx: &mut Tx, name: &str) -> Result<Vec<PluginRow>> {
    tx.sql("SELECT * FROM plugin_versions WHERE name = $1 ORDER BY installed_at DESC, digest")
        .bind(name)
        .all()
        .await
}

/// A version that waits may serve from now on, with what it was granted.
pub async fn grant(tx: &mut Tx, name: &str, digest: &str, granted: &Capabilities) -> Result<()> {
    tx.sql(
        "UPDATE plugin_versions SET state = 'ready', granted = $3
         WHERE name = $1 AND digest = $2 AND state = 'waiting'",
    )
    .bind(name)
    .bind(digest)
    .bind(Json(granted))
    .run()
    .await?;
    Ok(())
}

/// Writes down what has changed, those first that make room, and tells all hosts.
pub async fn change(
    tx: &mut Tx,
    name: &str,
    before: &[Version],
    mut after: Vec<Version>,
    now: Timestamp,
) -> Result<()> {
    after.retain(|version| !before.contains(version));
    after.sort_by_key(|version| version.state != State::Ready);
    for Version { digest, state, share, active_at } in after {
        tx.sql(
            "UPDATE plugin_versions SET state = $3, percent = $4, companies = $5, active_at = $6,
                 served_at = CASE WHEN $3 IN ('canary', 'active') THEN COALESCE(served_at, $7) ELSE served_at END
             WHERE name = $1 AND digest = $2",
        )
        .bind(name)
        .bind(digest)
        .bind(state)
        .bind(i64::from(share.percent))
        .bind(Json(share.companies))
        .bind(active_at)
        .bind(now)
        .run()
        .await?;
    }
    tx.announce(CHANGED).await
}

/// Notes that a version broke again and again, and tells all hosts.
pub async fn quarantine(tx: &mut Tx, name: &str, digest: &str, now: Timestamp) -> Result<()> {
    tx.sql(
        "UPDATE plugin_versions SET quarantined_at = $3
         WHERE name = $1 AND digest = $2 AND quarantined_at IS NULL",
    )
    .bind(name)
    .bind(digest)
    .bind(now)
    .run()
    .await?;
    tx.announce(CHANGED).await
}

/// An operator says that it serves: it is called again.
pub async fn release(tx: &mut Tx, name: &str, digest: &str) -> Result<()> {
    tx.sql("UPDATE plugin_versions SET quarantined_at = NULL WHERE name = $1 AND digest = $2")
        .bind(name)
        .bind(digest)
        .run()
        .await?;
    Ok(())
}

/// Takes a version away; its component goes with it unless another plugin is the same. What served is remembered.
pub async fn remove(
    tx: &mut Tx,
    row: &PluginRow,
    kind: Kind,
    secrets: &[String],
    now: Timestamp,
) -> Result<()> {
    tx.sql("DELETE FROM plugin_versions WHERE name = $1 AND digest = $2")
        .bind(&row.name)
        .bind(&row.digest)
        .run()
        .await?;
    tx.sql("DELETE FROM plugin_components WHERE digest = $1 AND NOT EXISTS
                (SELECT digest FROM plugin_versions WHERE plugin_versions.digest = plugin_components.digest)")
        .bind(&row.digest)
        .run()
        .await?;
    if row.served_at.is_none() {
        return tx.announce(CHANGED).await;
    }
    tx.sql(
        "INSERT INTO plugin_versions_gone (name, digest, version, kind, secrets, uninstalled_at)
         VALUES ($1, $2, $3, $4, $5, $6)
         ON CONFLICT (name, digest) DO UPDATE SET uninstalled_at = excluded.uninstalled_at",
    )
    .bind(&row.name)
    .bind(&row.digest)
    .bind(&row.version)
    .bind(kind)
    .bind(Json(secrets))
    .bind(now)
    .run()
    .await?;
    tx.announce(CHANGED).await
}

/// A version that was uninstalled, as later ones are compared with it.
#[derive(Clone, Debug, FromRow)]
pub struct Gone {
    pub version: String,
    pub kind: Kind,
    pub secrets: Json<Vec<String>>,
}

pub async fn gone(tx: &mut Tx, name: &str) -> Result<Vec<Gone>> {
    tx.sql("SELECT version, kind, secrets FROM plugin_versions_gone WHERE name = $1 ORDER BY uninstalled_at, version")
        .bind(name)
        .all()
        .await
}

/// The versions that serve; of a plugin that no version serves, those that did.
pub async fn current(tx: &mut Tx) -> Result<Vec<PluginRow>> {
    tx.sql(
        "SELECT * FROM plugin_versions v WHERE state IN ('active', 'canary')
             OR active_at IS NOT NULL AND NOT EXISTS (SELECT name FROM plugin_versions a
                 WHERE a.name = v.name AND a.state = 'active')",
    )
    .all()
    .await
}

/// Every version of every plugin, newest first.
pub async fn all(tx: &mut Tx) -> Result<Vec<PluginRow>> {
    tx.sql("SELECT * FROM plugin_versions ORDER BY name, installed_at DESC, digest").all().await
}

pub async fn component(tx: &mut Tx, digest: &str) -> Result<Option<(Vec<u8>,)>> {
    tx.sql("SELECT wasm FROM plugin_components WHERE digest = $1").bind(digest).optional().await
}
