//! SQL of the plugin registry.

use super::versions::{CanaryShare, VersionState};
use crate::manifest::capabilities::Capabilities;
use crate::prelude::*;
use tollhouse_platform::store::{FromRow, Result, params};

/// Channel of notifications about changes.
pub const CHANGE_CHANNEL: &str = "tollhouse_plugins";

#[derive(Clone, Debug, PartialEq, FromRow)]
pub struct PluginRow {
    pub name: String,
    pub digest: String,
    pub version: String,
    /// The publisher that signed the component; `None`: unsigned.
    pub publisher: Option<String>,
    /// Trusted signature in hexadecimal; `None`: unsigned; empty: not stored by an old release.
    pub signature: Option<String>,
    pub state: VersionState,
    /// Granted capabilities; `None`: all that the version requests.
    pub granted: Option<Json<Capabilities>>,
    /// Canary share in percent.
    pub percent: i64,
    pub companies: Json<Vec<String>>,
    pub installed_at: Timestamp,
    pub active_at: Option<Timestamp>,
    /// Start of the first service; `None`: never served.
    pub served_at: Option<Timestamp>,
    /// Start of the quarantine.
    pub quarantined_at: Option<Timestamp>,
}

impl PluginRow {
    pub fn share(&self) -> CanaryShare {
        CanaryShare { percent: self.percent, companies: self.companies.0.clone() }
    }

    pub fn is_serving(&self) -> bool {
        matches!(self.state, VersionState::Active | VersionState::Canary)
    }
}

/// Stores a version and its component. An existing version keeps its state, unless it waits, and
/// receives the new grant, publisher and signature.
pub async fn insert(tx: &mut Tx, row: &PluginRow, wasm: &[u8]) -> Result<()> {
    tx.sql(
        "INSERT INTO plugin_components (digest, wasm, created_at) VALUES ($1, $2, $3)
         ON CONFLICT (digest) DO NOTHING",
    )
    .params(params![&row.digest, wasm, row.installed_at])
    .execute()
    .await?;
    tx.sql(
        "INSERT INTO plugin_versions (name, digest, version, publisher, state, granted,
             companies, installed_at, signature)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
         ON CONFLICT (name, digest) DO UPDATE SET granted = excluded.granted,
             publisher = excluded.publisher,
             signature = COALESCE(excluded.signature, plugin_versions.signature),
             state = CASE plugin_versions.state WHEN 'waiting' THEN excluded.state
                 ELSE plugin_versions.state END",
    )
    .params(params![
        &row.name, &row.digest, &row.version, &row.publisher, row.state, &row.granted,
        &row.companies, row.installed_at, &row.signature
    ])
    .execute()
    .await
}

/// Returns all versions of a plugin, newest first, and locks them until the transaction ends.
pub async fn lock(tx: &mut Tx, name: &str) -> Result<Vec<PluginRow>> {
    tx.sql(
        "INSERT INTO plugin_names (name) VALUES ($1)
         ON CONFLICT (name) DO UPDATE SET name = excluded.name",
    )
    .bind(name)
    .execute()
    .await?;
    list_versions(tx, name).await
}

/// Returns all versions of a plugin, newest first.
pub async fn list_versions(tx: &mut Tx, name: &str) -> Result<Vec<PluginRow>> {
    tx.sql("SELECT * FROM plugin_versions WHERE name = $1 ORDER BY installed_at DESC, digest")
        .bind(name)
        .all()
        .await
}

/// Makes a waiting version ready, with a grant.
pub async fn grant(tx: &mut Tx, name: &str, digest: &str, granted: &Capabilities) -> Result<()> {
    tx.sql(
        "UPDATE plugin_versions SET state = 'ready', granted = $3
         WHERE name = $1 AND digest = $2 AND state = 'waiting'",
    )
    .params(params![name, digest, Json(granted)])
    .execute()
    .await
}

/// Saves changed versions and notifies all hosts. Retired ones come first: one may be active.
pub async fn update(
    tx: &mut Tx,
    name: &str,
    before: &[PluginRow],
    mut after: Vec<PluginRow>,
    now: Timestamp,
) -> Result<()> {
    after.retain(|version| !before.contains(version));
    after.sort_by_key(|version| version.state != VersionState::Ready);
    for PluginRow { digest, state, percent, companies, active_at, .. } in after {
        tx.sql(
            "UPDATE plugin_versions SET state = $3, percent = $4, companies = $5, active_at = $6,
                 served_at = CASE WHEN $3 IN ('canary', 'active') THEN COALESCE(served_at,
                 $7) ELSE served_at END
             WHERE name = $1 AND digest = $2",
        )
        .params(params![name, digest, state, percent, companies, active_at, now])
        .execute()
        .await?;
    }
    tx.notify(CHANGE_CHANNEL).await
}

/// Quarantines a version and notifies all hosts.
pub async fn quarantine(tx: &mut Tx, name: &str, digest: &str, now: Timestamp) -> Result<()> {
    tx.sql(
        "UPDATE plugin_versions SET quarantined_at = $3
         WHERE name = $1 AND digest = $2 AND quarantined_at IS NULL",
    )
    .params(params![name, digest, now])
    .execute()
    .await?;
    tx.notify(CHANGE_CHANNEL).await
}

/// Ends the quarantine of a version at an operator's request.
pub async fn end_quarantine(tx: &mut Tx, name: &str, digest: &str) -> Result<()> {
    tx.sql("UPDATE plugin_versions SET quarantined_at = NULL WHERE name = $1 AND digest = $2")
        .params(params![name, digest])
        .execute()
        .await
}

/// Removes a version and its component, if otherwise unused. Remembers it if it has served.
pub async fn delete(
    tx: &mut Tx,
    row: &PluginRow,
    kind: PluginKind,
    secrets: &[String],
    now: Timestamp,
) -> Result<()> {
    tx.sql("DELETE FROM plugin_versions WHERE name = $1 AND digest = $2")
        .params(params![&row.name, &row.digest])
        .execute()
        .await?;
    tx.sql(
        "DELETE FROM plugin_components WHERE digest = $1 AND NOT EXISTS
                (SELECT digest FROM plugin_versions
                WHERE plugin_versions.digest = plugin_components.digest)",
    )
    .bind(&row.digest)
    .execute()
    .await?;
    if row.served_at.is_none() {
        return tx.notify(CHANGE_CHANNEL).await;
    }
    tx.sql(
        "INSERT INTO plugin_versions_gone (name, digest, version, kind, secrets, uninstalled_at)
         VALUES ($1, $2, $3, $4, $5, $6)
         ON CONFLICT (name, digest) DO UPDATE SET uninstalled_at = excluded.uninstalled_at",
    )
    .params(params![&row.name, &row.digest, &row.version, kind, Json(secrets), now])
    .execute()
    .await?;
    tx.notify(CHANGE_CHANNEL).await
}

/// An uninstalled version, with which later ones are compared.
#[derive(Clone, Debug, FromRow)]
pub struct UninstalledVersion {
    pub version: String,
    pub kind: PluginKind,
    pub secrets: Json<Vec<String>>,
}

pub async fn list_uninstalled(tx: &mut Tx, name: &str) -> Result<Vec<UninstalledVersion>> {
    tx.sql("SELECT version, kind, secrets FROM plugin_versions_gone WHERE name = $1 ORDER BY uninstalled_at, version")
        .bind(name)
        .all()
        .await
}

/// Returns serving versions and, for plugins without an active one, those that have been active.
pub async fn list_serving(tx: &mut Tx) -> Result<Vec<PluginRow>> {
    tx.sql(
        "SELECT * FROM plugin_versions v WHERE state IN ('active', 'canary')
             OR active_at IS NOT NULL AND NOT EXISTS (SELECT name FROM plugin_versions a
                 WHERE a.name = v.name AND a.state = 'active')",
    )
    .all()
    .await
}

/// Returns all versions of all plugins, newest first.
pub async fn list(tx: &mut Tx) -> Result<Vec<PluginRow>> {
    tx.sql("SELECT * FROM plugin_versions ORDER BY name, installed_at DESC, digest").all().await
}

pub async fn find_component(tx: &mut Tx, digest: &str) -> Result<Option<Vec<u8>>> {
    tx.sql("SELECT wasm FROM plugin_components WHERE digest = $1")
        .bind(digest)
        .optional_value()
        .await
}
