//! Synchronizes a host with the registry. Loaded versions serve while others are compiled.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio::{
    sync::Notify,
    task::{JoinError, JoinSet},
};

use super::{
    serving::{Absence, Served, Serving},
    store::{self, PluginRow},
    versions::State,
};
use crate::{Plugin, Plugins, limits::bulkhead::Bulkhead};
use tollhouse_platform::{
    clock::Timestamp,
    error::{Error, Result},
    store::Store,
};

/// Interval of polling the registry.
const LOOK: Duration = Duration::from_secs(1);
/// Maximum number of versions loaded concurrently. Compilation is serialized regardless.
const AT_ONCE: usize = 4;
/// Delay before a rejected version is admitted again: the host may have been overloaded.
const TRY_AGAIN_S: i64 = 60;

/// A digest and the result of loading it.
type Made = (String, Result<Option<Arc<Plugin>>>);

#[derive(Default)]
pub(crate) struct Following {
    /// Serializes reading the registry and replacing the serving versions.
    adopting: tokio::sync::Mutex<()>,
    /// Signals that the registry has changed.
    told: Notify,
    /// Signals that a version should serve that is not loaded here.
    behind: Notify,
    /// Rejected digests, and the end of their delay.
    refused: Mutex<HashMap<String, Timestamp>>,
}

impl Following {
    /// Returns whether a version must be loaded.
    fn is_wanted(&self, digest: &str, is_here: bool, now: Timestamp) -> bool {
        let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        refused.retain(|known, until| *until > now && !(is_here && known == digest));
        !is_here && !refused.contains_key(digest)
    }

    fn refuse(&self, digest: &str, now: Timestamp) {
        let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        refused.insert(digest.to_owned(), now.plus_seconds(TRY_AGAIN_S));
    }
}

impl Plugins {
    /// Follows the changes of other hosts: by notification on PostgreSQL, else within a second.
    pub async fn keep_up(&self, db: &Store) {
        tokio::join!(self.listen(db), self.look(db), self.get_ready(db));
    }

    async fn listen(&self, db: &Store) {
        loop {
            let heard = || self.0.following.told.notify_one();
            let Err(error) = db.listen(store::CHANGED, heard).await;
            let error = Error::from(error).chain();
            tracing::warn!(
                error,
                "plugin change notifications are unavailable; polling every second"
            );
            tokio::time::sleep(LOOK).await;
        }
    }

    async fn look(&self, db: &Store) {
        loop {
            // A notification or the interval, whichever comes first.
            let _ = tokio::time::timeout(LOOK, self.0.following.told.notified()).await;
            match self.adopt(db, &[]).await {
                Ok(missing) if missing.is_empty() => {}
                Ok(_) => self.0.following.behind.notify_one(),
                Err(error) => {
                    tracing::error!(error = %error.chain(), "the plugin registry cannot be read");
                }
            }
        }
    }

    /// Loads missing versions. Each serves as soon as it is loaded, independently of others.
    async fn get_ready(&self, db: &Store) {
        let (mut under_way, mut begun) = (JoinSet::new(), HashSet::new());
        loop {
            let made = tokio::select! {
                () = self.0.following.behind.notified() => None,
                Some(made) = under_way.join_next() => Some(made),
            };
            let ready = made.and_then(|made| self.made(made, &mut begun));
            if under_way.is_empty() {
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
                if under_way.len() < AT_ONCE && begun.insert(row.digest.clone()) {
                    self.begin(db, row, &mut under_way);
                }
            }
        }
    }

    /// Returns the plugin if loading it succeeded.
    fn made(
        &self,
        made: std::result::Result<Made, JoinError>,
        begun: &mut HashSet<String>,
    ) -> Option<Arc<Plugin>> {
        let (digest, made) =
            made.map_err(|error| tracing::error!(%error, "plugin version could not be loaded: its task panicked")).ok()?;
        begun.remove(&digest);
        made.unwrap_or_else(|error| {
            tracing::error!(error = %error.chain(), "component could not be read");
            self.0.following.refuse(&digest, self.0.clock.now());
            None
        })
    }

    fn begin(&self, db: &Store, row: PluginRow, under_way: &mut JoinSet<Made>) {
        let (plugins, db) = (self.clone(), db.clone());
        under_way.spawn(async move {
            let made = plugins.make_ready(&db, &row).await;
            (row.digest, made)
        });
    }

    /// Adopts the registry's state. Waits until missing versions are loaded.
    pub async fn follow(&self, db: &Store) -> Result<()> {
        let mut missing = self.adopt(db, &[]).await?;
        while !missing.is_empty() {
            let ready = self.make_all_ready(db, missing).await?;
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
        if let Err(error) = self.tell_of_the_unfit(db).await {
            tracing::error!(error = %error.chain(), "quarantines could not be saved");
        }
        let _adopting = self.0.following.adopting.lock().await;
        let rows = db.select(async |tx| store::current(tx).await).await?;
        let (before, now) = (self.0.serving.load_full(), self.0.clock.now());
        let (mut after, mut missing) = (Serving::default(), Vec::new());
        for (name, rows) in by_name(rows) {
            let known = before.plugins.get(&name);
            let row = |state: State| rows.iter().find(|row| row.state == state);
            let Some(active) = row(State::Active) else {
                if rows.iter().any(|row| row.active_at.is_some()) {
                    after.absent.insert(name, Absence::Deactivated);
                }
                continue;
            };
            let mut find = |row: &PluginRow| {
                let found = is_here(row, known, ready);
                if self.0.following.is_wanted(&row.digest, found.is_some(), now) {
                    missing.push(row.clone());
                }
                found
            };
            let active = find(active).or_else(|| known.map(|known| known.active.clone()));
            let Some(active) = active else {
                after.absent.insert(name, Absence::NotReady);
                continue;
            };
            let canary = row(State::Canary).and_then(|row| Some((find(row)?, row.share())));
            let bulkhead = match known {
                Some(known) => known.bulkhead.clone(),
                None => Arc::new(Bulkhead::new(&self.0.calls.limits)),
            };
            after.plugins.insert(name, Served { active, canary, bulkhead });
        }
        self.0.serving.store(Arc::new(after));
        Ok(missing)
    }

    /// Saves quarantines of this host in the registry, for all hosts.
    async fn tell_of_the_unfit(&self, db: &Store) -> Result<()> {
        let serving = self.0.serving.load_full();
        let versions = serving.plugins.values().flat_map(Served::versions);
        for plugin in versions.filter(|plugin| plugin.health.is_news()) {
            let (plugin, now) = (plugin.clone(), self.0.clock.now());
            let unfit = plugin.clone();
            db.write(async move |tx| {
                store::quarantine(tx, &unfit.manifest.name, &unfit.digest, now).await
            })
            .await?;
            // Even if the registry has another serving version by now.
            plugin.health.follow(true);
        }
        Ok(())
    }

    /// Loads several versions concurrently.
    async fn make_all_ready(&self, db: &Store, rows: Vec<PluginRow>) -> Result<Vec<Arc<Plugin>>> {
        let (mut rows, mut under_way) = (rows.into_iter(), JoinSet::new());
        let mut ready = Vec::new();
        loop {
            for row in rows.by_ref().take(AT_ONCE - under_way.len()) {
                self.begin(db, row, &mut under_way);
            }
            match under_way.join_next().await {
                Some(made) => ready.extend(made.map_err(Error::internal)?.1?),
                None => return Ok(ready),
            }
        }
    }

    /// Admits a version that serves elsewhere. `None`: it was rejected.
    async fn make_ready(&self, db: &Store, row: &PluginRow) -> Result<Option<Arc<Plugin>>> {
        match self.admit_stored(db, row).await? {
            Ok(plugin) => {
                tracing::info!(
                    plugin = &*plugin.label,
                    digest = plugin.digest,
                    "plugin version loaded"
                );
                Ok(Some(plugin))
            }
            Err(reason) => {
                let (plugin, digest) = (&row.name, &row.digest);
                tracing::error!(
                    plugin,
                    digest,
                    reason,
                    "plugin version could not be loaded on this host"
                );
                self.0.following.refuse(digest, self.0.clock.now());
                Ok(None)
            }
        }
    }
}

/// Returns the plugin of a row if it is serving or in `ready`.
fn is_here(row: &PluginRow, known: Option<&Served>, ready: &[Arc<Plugin>]) -> Option<Arc<Plugin>> {
    let serving = known.into_iter().flat_map(Served::versions);
    // A digest alone is not enough: the row may name the component of another plugin.
    let is_it = |plugin: &&Arc<Plugin>| plugin.digest == row.digest && *plugin.name == *row.name;
    let found = serving.chain(ready).find(is_it)?;
    found.health.follow(row.quarantined_at.is_some());
    Some(found.clone())
}

fn by_name(rows: Vec<PluginRow>) -> BTreeMap<String, Vec<PluginRow>> {
    let mut names = BTreeMap::<String, Vec<PluginRow>>::new();
    for row in rows {
        names.entry(row.name.clone()).or_default().push(row);
    }
    names
}
