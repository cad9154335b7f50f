//! Hosts: each reports that it is running, which plugin versions it serves, and how many jobs it
//! runs.
//!
//! Nothing depends on these rows: jobs and requests are protected by leases. They are for
//! operators.

mod store;

use serde::Deserialize;

use self::store::{HostRow, HostView};
use crate::state::prelude::*;
use tollhouse_platform::random::Random;

/// Time since the last report after which a host counts as lost: three reports are missing.
const LOST_AFTER_SECONDS: i64 = 60;
/// Time since the last report after which a host is forgotten.
const FORGOTTEN_AFTER_SECONDS: i64 = 86_400;

/// The identity of this host until it stops.
pub struct HostIdentity {
    id: String,
    started_at: Timestamp,
}

impl HostIdentity {
    pub fn new(random: &Random, now: Timestamp) -> HostIdentity {
        HostIdentity { id: random.id(now), started_at: now }
    }
}

/// A plugin version that serves on a host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ServedVersion {
    name: String,
    version: String,
    /// SHA-256 digest of the component.
    digest: String,
    /// `active` or `canary`.
    state: String,
    /// `true` if this host found that the version fails repeatedly.
    quarantined: bool,
}

/// Reports that this host is running, and deletes hosts without a report for a day.
pub async fn report(app: &App) -> Result<()> {
    let now = app.clock.now();
    let identity = app.slot::<HostIdentity>();
    let versions = app.plugins.serving_versions().into_iter().map(|(plugin, is_canary)| {
        let state = if is_canary { "canary" } else { "active" }.to_owned();
        let quarantined = plugin.is_quarantined();
        let (name, version) = (plugin.manifest.name.clone(), plugin.manifest.version.to_string());
        ServedVersion { name, version, digest: plugin.digest.clone(), state, quarantined }
    });
    let row = HostRow {
        id: identity.id.clone(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        runs_jobs: app.workers.enabled,
        running_jobs: i64::try_from(app.workers.running()).unwrap_or(i64::MAX),
        plugins: Json(versions.collect()),
        started_at: identity.started_at,
        seen_at: now,
    };
    let forgotten = now.plus_seconds(-FORGOTTEN_AFTER_SECONDS);
    app.store.write(async move |tx| store::report(tx, &row, forgotten).await).await?;
    Ok(())
}

/// Removes this host, which is stopping.
pub async fn leave(app: &App) -> Result<()> {
    let id = app.slot::<HostIdentity>().id.clone();
    app.store.write(async move |tx| store::delete(tx, &id).await).await?;
    Ok(())
}

/// Returns the hosts on this database, latest start first.
pub async fn list(State(app): State<App>) -> Result<DataResponse<Vec<HostView>>> {
    let rows = app.store.select(async |tx| store::list(tx).await).await?;
    let lost_before = app.clock.now().plus_seconds(-LOST_AFTER_SECONDS);
    let own = &app.slot::<HostIdentity>().id;
    let view = |row: HostRow| HostView {
        is_lost: row.seen_at < lost_before,
        is_this_host: row.id == *own,
        row,
    };
    DataResponse::data(rows.into_iter().map(view).collect(), "Hosts fetched successfully")
}
