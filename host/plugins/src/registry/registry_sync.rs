//! Synchronizes a host with the registry. Loaded versions serve while others are compiled.

use std::collections::HashSet;

use futures::{StreamExt, TryStreamExt, stream};
use tokio::{
    sync::Notify,
    task::{JoinError, JoinSet},
};

use super::{
    serving::{ServingPlugins, ServingVersions, Unavailability},
    store::{self, PluginRow},
    versions::VersionState,
};
use crate::limits::bulkhead::Bulkhead;
use crate::prelude::*;
use tollhouse_platform::error::Result;

/// Interval of polling the registry.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// Maximum number of versions loaded concurrently. Compilation is serialized regardless.
const MAX_CONCURRENT_LOADS: usize = 4;
/// Delay before a rejected version is admitted again: the host may have been overloaded.
const RETRY_DELAY_S: i64 = 60;

/// A digest and the result of loading it.
type LoadResult = (String, Result<Option<Arc<Plugin>>>);

#[derive(Default)]
pub(crate) struct RegistrySync {
    /// Serializes reading the registry and replacing the serving versions.
    adopt_lock: tokio::sync::Mutex<()>,
    /// Signals that the registry has changed.
    changed: Notify,
    /// Signals that a version should serve that is not loaded here.
    versions_missing: Notify,
    /// Rejected digests, and the end of their delay.
    rejected: Mutex<HashMap<String, Timestamp>>,
}

impl RegistrySync {
    /// Returns whether a version must be loaded.
    fn should_load(&self, digest: &str, is_here: bool, now: Timestamp) -> bool {
        let mut refused = self.rejected.lock().unwrap_or_else(PoisonError::into_inner);
        refused.retain(|known, until| *until > now && !(is_here && known == digest));
        !is_here && !refused.contains_key(digest)
    }

    fn reject(&self, digest: &str, now: Timestamp) {
        let mut refused = self.rejected.lock().unwrap_or_else(PoisonError::into_inner);
        refused.insert(digest.to_owned(), now.plus_seconds(RETRY_DELAY_S));
    }
}

impl Plugins {
    /// Follows the changes of other hosts: by notification on PostgreSQL, else within a second.
    pub async fn sync(&self, db: &Store) {
        tokio::join!(self.listen(db), self.poll(db), self.load_missing(db));
    }

    async fn listen(&self, db: &Store) {
        loop {
            let notify = || self.0.registry_sync.changed.notify_one();
            let Err(error) = db.listen(store::CHANGE_CHANNEL, notify).await;
            let what = "plugin change notifications are unavailable; polling every second";
            tracing::warn!(error = Error::from(error).chain(), "{what}");
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }

    async fn poll(&self, db: &Store) {
        loop {
            // A notification or the interval, whichever comes first.
            let _ =
                tokio::time::timeout(POLL_INTERVAL, self.0.registry_sync.changed.notified()).await;
            match self.adopt(db, &[]).await {
                Ok(missing) if missing.is_empty() => {}
                Ok(_) => self.0.registry_sync.versions_missing.notify_one(),
                Err(error) => {
                    tracing::error!(error = %error.chain(), "the plugin registry cannot be read");
                }
            }
        }
    }

    /// Loads missing versions. Each serves as soon as it is loaded, independently of others.
    async fn load_missing(&self, db: &Store) {
        let (mut in_flight, mut begun) = (JoinSet::new(), HashSet::new());
        loop {
            let ready = tokio::select! {
                () = self.0.registry_sync.versions_missing.notified() => None,
                Some(made) = in_flight.join_next() => self.finish_load(made, &mut begun),
            };
            if in_flight.is_empty() {
                begun.clear(); // includes those that panicked
            }
            let missing = match self.adopt(db, ready.as_slice()).await {
                Ok(missing) => missing,
                Err(error) => {
                    tracing::error!(error = %error.chain(), "the plugin registry cannot be read");
                    continue;
                }
            };
            for row in missing {
                if in_flight.len() < MAX_CONCURRENT_LOADS && begun.insert(row.digest.clone()) {
                    let (plugins, db) = (self.clone(), db.clone());
                    in_flight.spawn(async move {
                        let made = plugins.load(&db, &row).await;
                        (row.digest, made)
                    });
                }
            }
        }
    }

    /// Returns the plugin if loading it succeeded.
    fn finish_load(
        &self,
        made: std::result::Result<LoadResult, JoinError>,
        begun: &mut HashSet<String>,
    ) -> Option<Arc<Plugin>> {
        let panicked = "plugin version could not be loaded: its task panicked";
        let (digest, made) = made.map_err(|error| tracing::error!(%error, "{panicked}")).ok()?;
        begun.remove(&digest);
        made.unwrap_or_else(|error| {
            tracing::error!(error = %error.chain(), "component could not be read");
            self.0.registry_sync.reject(&digest, self.0.clock.now());
            None
        })
    }

    /// Adopts the registry's state. Waits until missing versions are loaded.
    pub async fn sync_once(&self, db: &Store) -> Result<()> {
        let mut missing = self.adopt(db, &[]).await?;
        while !missing.is_empty() {
            let loads = stream::iter(missing).map(|row| {
                let (plugins, db) = (self.clone(), db.clone());
                tokio::spawn(async move { plugins.load(&db, &row).await })
            });
            let loads = loads.buffer_unordered(MAX_CONCURRENT_LOADS);
            let loads = loads.map(|loaded| loaded.map_err(Error::internal)?);
            let ready: Vec<Option<Arc<Plugin>>> = loads.try_collect().await?;
            let ready: Vec<Arc<Plugin>> = ready.into_iter().flatten().collect();
            if ready.is_empty() {
                break;
            }
            missing = self.adopt(db, &ready).await?;
        }
        Ok(())
    }

    /// Adopts the registry's state with the versions that are loaded or in `ready`. Returns the
    /// missing ones; until they are loaded, the previous version serves.
    pub(crate) async fn adopt(&self, db: &Store, ready: &[Arc<Plugin>]) -> Result<Vec<PluginRow>> {
        if let Err(error) = self.save_quarantines(db).await {
            tracing::error!(error = %error.chain(), "quarantines could not be saved");
        }
        let _adopting = self.0.registry_sync.adopt_lock.lock().await;
        let rows = db.select(async |tx| store::list_serving(tx).await).await?;
        let (before, now) = (self.0.serving.load_full(), self.0.clock.now());
        let (mut after, mut missing) = (ServingPlugins::default(), Vec::new());
        let mut names = BTreeMap::<String, Vec<PluginRow>>::new();
        for row in rows {
            names.entry(row.name.clone()).or_default().push(row);
        }
        for (name, rows) in names {
            let known = before.plugins.get(&name);
            let row = |state: VersionState| rows.iter().find(|row| row.state == state);
            let Some(active) = row(VersionState::Active) else {
                if rows.iter().any(|row| row.active_at.is_some()) {
                    after.unavailable.insert(name, Unavailability::Deactivated);
                }
                continue;
            };
            let mut find = |row: &PluginRow| {
                let found = find_loaded(row, known, ready);
                if self.0.registry_sync.should_load(&row.digest, found.is_some(), now) {
                    missing.push(row.clone());
                }
                found
            };
            let active = find(active).or_else(|| known.map(|known| known.active.clone()));
            let Some(active) = active else {
                after.unavailable.insert(name, Unavailability::NotReady);
                continue;
            };
            let canary = row(VersionState::Canary).and_then(|row| Some((find(row)?, row.share())));
            let bulkhead = known.map(|known| known.bulkhead.clone());
            let bulkhead =
                bulkhead.unwrap_or_else(|| Arc::new(Bulkhead::new(&self.0.calls.limits)));
            after.plugins.insert(name, ServingVersions { active, canary, bulkhead });
        }
        self.0.serving.store(Arc::new(after));
        Ok(missing)
    }

    /// Saves quarantines of this host in the registry, for all hosts.
    async fn save_quarantines(&self, db: &Store) -> Result<()> {
        let serving = self.0.serving.load_full();
        let versions = serving.plugins.values().flat_map(ServingVersions::versions);
        for plugin in versions.filter(|plugin| plugin.health.needs_saving()) {
            let (unfit, now) = (plugin.clone(), self.0.clock.now());
            db.write(async move |tx| store::quarantine(tx, &unfit.name, &unfit.digest, now).await)
                .await?;
            // Even if the registry has another serving version by now.
            plugin.health.sync_quarantine(true);
        }
        Ok(())
    }

    /// Admits a version that serves elsewhere. `None`: it was rejected.
    async fn load(&self, db: &Store, row: &PluginRow) -> Result<Option<Arc<Plugin>>> {
        let PluginRow { name: plugin, digest, .. } = row;
        match self.admit_stored(db, row).await? {
            Ok(loaded) => {
                tracing::info!(plugin = &*loaded.label, digest, "plugin version loaded");
                Ok(Some(loaded))
            }
            Err(reason) => {
                let what = "plugin version could not be loaded on this host";
                tracing::error!(plugin, digest, reason, "{what}");
                self.0.registry_sync.reject(digest, self.0.clock.now());
                Ok(None)
            }
        }
    }
}

/// Returns the plugin of a row if it is serving or in `ready`.
fn find_loaded(
    row: &PluginRow,
    known: Option<&ServingVersions>,
    ready: &[Arc<Plugin>],
) -> Option<Arc<Plugin>> {
    let serving = known.into_iter().flat_map(ServingVersions::versions);
    // A digest alone is not enough: the row may name the component of another plugin.
    let is_it = |plugin: &&Arc<Plugin>| plugin.digest == row.digest && *plugin.name == *row.name;
    let found = serving.chain(ready).find(is_it)?;
    found.health.sync_quarantine(row.quarantined_at.is_some());
    Some(found.clone())
}
