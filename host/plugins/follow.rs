//! How a host keeps up with the registry in the database. What it has ready serves at once as the registry says; what it must compile
//! first holds up nothing else.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio::{sync::Notify, task::JoinSet};

use super::{
    Plugin, Plugins,
    bulkhead::Bulkhead,
    serving::{Absence, Served, Serving},
    store::{self, PluginRow},
    versions::State,
};
use crate::{
    clock::Timestamp,
    error::{Error, Result},
    store::{Store, Tx},
};

/// How often a host looks what serves that nobody tells.
const LOOK: Duration = Duration::from_secs(1);
/// So many are made ready at once when a host starts: each may have to be compiled, which takes memory.
const AT_ONCE: usize = 4;
/// What was not admitted is tried again after this long: it may have been this host's bad moment.
const TRY_AGAIN_S: i64 = 60;

#[derive(Default)]
pub(super) struct Following {
    /// Who reads the registry swaps what serves before another reads it.
    adopting: tokio::sync::Mutex<()>,
    /// The registry has changed.
    told: Notify,
    /// Something serves elsewhere that is not ready here.
    behind: Notify,
    /// Until when a digest that was not admitted is left alone.
    refused: Mutex<HashMap<String, Timestamp>>,
}

impl Following {
    fn is_refused(&self, digest: &str, now: Timestamp) -> bool {
        let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        refused.retain(|_, until| *until > now);
        refused.contains_key(digest)
    }

    fn refuse(&self, digest: &str, now: Timestamp) {
        let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        refused.insert(digest.to_owned(), now.plus_seconds(TRY_AGAIN_S));
    }
}

impl Plugins {
    /// Follows what other hosts change, for as long as this one serves: within moments on PostgreSQL, within a second otherwise.
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
                "changes of plugins are not told here: they are looked for every second"
            );
            tokio::time::sleep(LOOK).await;
        }
    }

    async fn look(&self, db: &Store) {
        loop {
            // Whichever comes first.
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

    /// Gets one after the other ready. Each serves as soon as it is, whatever the registry says by then of others.
    async fn get_ready(&self, db: &Store) {
        loop {
            self.0.following.behind.notified().await;
            let made_ready = async {
                let mut missing = self.adopt(db, &[]).await?;
                while let Some(row) = missing.pop() {
                    if let Some(plugin) = self.make_ready(db, &row).await? {
                        missing = self.adopt(db, &[plugin]).await?;
                    }
                }
                Ok::<_, Error>(())
            };
            if let Err(error) = made_ready.await {
                tracing::error!(error = %error.chain(), "the plugin registry cannot be read");
            }
        }
    }

    /// Takes over all that the registry says serves; what has to be made ready is waited for.
    pub async fn follow(&self, db: &Store) -> Result<()> {
        let missing = self.adopt(db, &[]).await?;
        let ready = self.make_all_ready(db, missing).await?;
        if !ready.is_empty() {
            self.adopt(db, &ready).await?;
        }
        Ok(())
    }

    /// Lets serve what the registry says, as far as it is here or among `ready`; answers what else should serve. Where that is a
    /// newer version, the old one goes on.
    pub(super) async fn adopt(&self, db: &Store, ready: &[Arc<Plugin>]) -> Result<Vec<PluginRow>> {
        if let Err(error) = self.tell_of_the_unfit(db).await {
            tracing::error!(error = %error.chain(), "the registry does not hear which plugins broke");
        }
        let _adopting = self.0.following.adopting.lock().await;
        let rows = db.select(async |tx| store::current(tx).await).await?;
        let (before, now) = (self.0.serving.load_full(), self.0.clock.now());
        let (mut after, mut missing) = (Serving::default(), Vec::new());
        for (name, rows) in by_name(rows) {
            let known = before.plugins.get(&name);
            let mut find = |state: State| {
                let row = rows.iter().find(|row| row.state == state)?;
                let found = is_here(row, known, ready);
                if found.is_none() && !self.0.following.is_refused(&row.digest, now) {
                    missing.push(row.clone());
                }
                Some((row, found))
            };
            let canary = find(State::Canary).and_then(|(row, found)| Some((found?, row.share())));
            let Some((_, active)) = find(State::Active) else {
                if rows.iter().any(|row| row.active_at.is_some()) {
                    after.absent.insert(name, Absence::Deactivated);
                }
                continue;
            };
            let Some(active) = active.or_else(|| known.map(|known| known.active.clone())) else {
                after.absent.insert(name, Absence::NotReady);
                continue;
            };
            let bulkhead = match known {
                Some(known) => known.bulkhead.clone(),
                None => Arc::new(Bulkhead::new(&self.0.calls.limits)),
            };
            after.plugins.insert(name, Served { active, canary, bulkhead });
        }
        self.0.serving.store(Arc::new(after));
        Ok(missing)
    }

    /// What broke here again and again is called no more by any host.
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
            // Also where another version is the one that the registry names.
            plugin.health.follow(true);
        }
        Ok(())
    }

    /// Some at once: what is compiled already only waits for its turn on a processor.
    async fn make_all_ready(&self, db: &Store, rows: Vec<PluginRow>) -> Result<Vec<Arc<Plugin>>> {
        let (mut rows, mut under_way) = (rows.into_iter(), JoinSet::new());
        let mut ready = Vec::new();
        loop {
            for row in rows.by_ref().take(AT_ONCE - under_way.len()) {
                let (plugins, db) = (self.clone(), db.clone());
                under_way.spawn(async move { plugins.make_ready(&db, &row).await });
            }
            match under_way.join_next().await {
                Some(made) => ready.extend(made.map_err(Error::internal)??),
                None => return Ok(ready),
            }
        }
    }

    /// Admits what serves elsewhere. None: it cannot be here.
    async fn make_ready(&self, db: &Store, row: &PluginRow) -> Result<Option<Arc<Plugin>>> {
        let component = async |tx: &mut Tx| store::component(tx, &row.digest).await;
        let Some((wasm,)) = db.select(component).await? else { return Ok(None) };
        let admitted = self.admit_known(Arc::new(wasm)).await.plugin;
        match admitted.and_then(|plugin| is_of(plugin, row)) {
            Ok(plugin) => {
                tracing::info!(
                    plugin = &*plugin.label,
                    digest = plugin.digest,
                    "plugin taken over"
                );
                Ok(Some(plugin))
            }
            Err(reason) => {
                let (plugin, digest) = (&row.name, &row.digest);
                tracing::error!(plugin, digest, reason, "plugin not taken over");
                self.0.following.refuse(digest, self.0.clock.now());
                Ok(None)
            }
        }
    }
}

fn is_of(plugin: Arc<Plugin>, row: &PluginRow) -> std::result::Result<Arc<Plugin>, String> {
    match plugin.digest == row.digest {
        true => Ok(plugin),
        false => Err(format!("what is kept under its digest is {}", plugin.label)),
    }
}

/// The plugin of a row, if it serves already or has been made ready.
fn is_here(row: &PluginRow, known: Option<&Served>, ready: &[Arc<Plugin>]) -> Option<Arc<Plugin>> {
    let serving = known.into_iter().flat_map(Served::versions);
    let found = serving.chain(ready).find(|plugin| plugin.digest == row.digest)?;
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
