//! Which plugins serve, and how a host of a fleet keeps up with the registry in the database.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use arc_swap::ArcSwap;
use tokio::sync::{Mutex, Notify};

use super::{
    Callable, Gateway, Kind, Limits, Plugin, Provider, Recorder, Registers,
    admission::{self, Admission, Care, Check, LABEL_DIGITS},
    calls::Calls,
    serving::{Served, Serving},
    store::{self, PluginRow},
    versions::State,
};
use crate::{
    clock::Clock,
    egress::Egress,
    error::{Error, Result},
    random::Random,
    store::{Store, Tx},
    telemetry::{Each, Now, Registry},
};

type PluginLabels = [(&'static str, String); 3];

/// The digests of what serves elsewhere and could not be taken over here: compiling it again would change nothing.
type Refused = BTreeSet<String>;

/// How often a host looks what serves that nobody tells.
const LOOK: Duration = Duration::from_secs(1);

/// Cheap to clone.
#[derive(Clone)]
pub struct Plugins(pub(super) Arc<Inner>);

pub(super) struct Inner {
    pub calls: Arc<Calls>,
    serving: ArcSwap<Serving>,
    /// One change at a time, so that none is lost.
    pub changes: Mutex<Refused>,
    /// The registry has changed.
    told: Notify,
    pub clock: Clock,
    random: Random,
}

impl Plugins {
    pub fn new(
        limits: Limits,
        egress: Egress,
        clock: Clock,
        random: Random,
    ) -> wasmtime::Result<Plugins> {
        let calls = Arc::new(Calls::new(limits, egress, clock.clone(), random.clone())?);
        let (serving, changes, told) = (ArcSwap::default(), Mutex::default(), Notify::new());
        Ok(Plugins(Arc::new(Inner { calls, serving, changes, told, clock, random })))
    }

    /// The provider of this name, in the version that serves a company now. 400 when there is none.
    pub fn provider(&self, name: &str, company: &str) -> Result<Provider> {
        let serving = self.serving(name, company, Kind::Provider);
        serving.map(Provider).ok_or_else(|| match self.is_deactivated(name) {
            true => Error::Invalid(format!("{name} has been deactivated")),
            false => Error::invalid("payment service key not found"),
        })
    }

    #[must_use]
    pub fn gateway(&self, name: &str, company: &str) -> Option<Gateway> {
        self.serving(name, company, Kind::Sms).map(Gateway)
    }

    #[must_use]
    pub fn registers(&self, country: &str, company: &str) -> Option<Registers> {
        self.serving(country, company, Kind::Country).map(Registers)
    }

    /// In the version that serves everyone.
    #[must_use]
    pub fn active_registers(&self, country: &str) -> Option<Registers> {
        self.get(country).filter(|plugin| plugin.manifest().kind == Kind::Country).map(Registers)
    }

    /// The same of all countries that are installed, sorted by name.
    #[must_use]
    pub fn all_registers(&self) -> Vec<Registers> {
        let countries = self.names(Kind::Country);
        countries.iter().filter_map(|country| self.active_registers(country)).collect()
    }

    /// A version that serves on this host.
    pub(super) fn serving_version(&self, name: &str, digest: &str) -> Option<Arc<Plugin>> {
        let serving = self.0.serving.load();
        serving.plugins.get(name)?.versions().find(|plugin| plugin.digest == digest).cloned()
    }

    fn serving(&self, name: &str, company: &str, kind: Kind) -> Option<Callable> {
        let plugin = self.0.serving.load().plugins.get(name)?.choose(
            company,
            &self.0.random,
            self.0.clock.now(),
        );
        (plugin.manifest.kind == kind).then(|| self.callable(plugin).of_company(company))
    }

    /// What serves everyone under this name, whatever its kind.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<Callable> {
        let plugin = self.0.serving.load().plugins.get(name)?.active.clone();
        Some(self.callable(plugin))
    }

    /// From now on `recorder` hears of calls. The first one stays.
    pub fn recorded_by(&self, recorder: Recorder) {
        let _ = self.0.calls.recorder.set(recorder);
    }

    fn callable(&self, plugin: Arc<Plugin>) -> Callable {
        Callable::new(plugin, self.0.calls.clone())
    }

    /// Whether it is installed, and an operator has taken it out of service.
    #[must_use]
    pub fn is_deactivated(&self, name: &str) -> bool {
        self.0.serving.load().deactivated.contains(name)
    }

    /// Admits a component that serves nobody: to be measured. `Err` is a reason for the operator.
    pub async fn try_out(&self, wasm: Vec<u8>) -> Result<Callable, String> {
        let admission = self.admit_known(Arc::new(wasm)).await;
        admission.plugin.map(|plugin| self.callable(plugin))
    }

    /// The same step by step, for its author; no plugin when a step failed.
    pub async fn inspect(&self, wasm: Vec<u8>) -> (Vec<Check>, Option<Callable>) {
        let admission = self.admit_known(Arc::new(wasm)).await;
        (admission.checks, admission.plugin.ok().map(|plugin| self.callable(plugin)))
    }

    /// Admits what was asked everything when it was installed.
    pub(super) async fn admit_known(&self, wasm: Arc<Vec<u8>>) -> Admission {
        admission::admit(&self.0.calls, wasm, Care::Known).await
    }

    /// The names of the plugins of a kind that serve, sorted.
    #[must_use]
    pub fn names(&self, kind: Kind) -> Vec<String> {
        let serving = self.0.serving.load();
        let named = serving.plugins.iter().filter(|(_, one)| one.active.manifest.kind == kind);
        named.map(|(name, _)| name.clone()).collect()
    }

    /// The most bytes that a component may have.
    #[must_use]
    pub fn most_component_bytes(&self) -> usize {
        self.0.calls.limits.component_bytes
    }

    pub fn register(&self, registry: &mut Registry) {
        let calls = &self.0.calls;
        calls.metrics.register(registry);
        let (slots, all) = (calls.slots.clone(), calls.limits.instances);
        let in_use = move || f64::from(all) - slots.available_permits() as f64;
        registry.register("plugin_slots_in_use", "Instances under way", Now(in_use));
        registry.register("plugin_slots", "Instances at once", Now(move || f64::from(all)));
        let breakers = calls.breakers.clone();
        let clock = calls.clock.clone();
        let open =
            move || breakers.as_ref().map_or(0, |breakers| breakers.open(clock.now())) as f64;
        let what = "Upstreams that are left alone for a while, by account";
        registry.register("plugin_upstreams_left_alone", what, Now(open));
        let plugins = self.clone();
        let serving = Each(move || plugins.labelled());
        registry.register("plugin_serving", "Versions that serve on this host", serving);
    }

    fn labelled(&self) -> Vec<(PluginLabels, f64)> {
        let labels = |plugin: &Arc<Plugin>| {
            let digest = plugin.digest[..LABEL_DIGITS].to_owned();
            [
                ("plugin", plugin.manifest.name.clone()),
                ("version", plugin.manifest.version.to_string()),
                ("digest", digest),
            ]
        };
        let serving = self.0.serving.load();
        let versions = serving.plugins.values().flat_map(Served::versions);
        versions.map(|plugin| (labels(plugin), 1.0)).collect()
    }

    // ---- keeping up ---------------------------------------------------------------------------

    /// Follows what other hosts change, for as long as this one serves: within moments on PostgreSQL, within a second otherwise.
    pub async fn keep_up(&self, db: &Store) {
        tokio::join!(self.listen(db), self.look(db));
    }

    async fn listen(&self, db: &Store) {
        loop {
            let heard = || self.0.told.notify_one();
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
            let _ = tokio::time::timeout(LOOK, self.0.told.notified()).await;
            if let Err(error) = self.follow(db).await {
                tracing::error!(error = %error.chain(), "the plugin registry cannot be read");
            }
        }
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

    /// Takes over what the database says serves, and says what this host found unfit.
    pub async fn follow(&self, db: &Store) -> Result<()> {
        if let Err(error) = self.tell_of_the_unfit(db).await {
            tracing::error!(error = %error.chain(), "the registry does not hear which plugins broke");
        }
        let mut refused = self.0.changes.lock().await;
        self.take_over(db, &mut refused, &[]).await
    }

    /// The same for who holds `changes` and has admitted some of it.
    pub(super) async fn take_over(
        &self,
        db: &Store,
        refused: &mut Refused,
        admitted: &[Arc<Plugin>],
    ) -> Result<()> {
        let rows = db.select(async |tx| store::current(tx).await).await?;
        let before = self.0.serving.load_full();
        let mut after = Serving::default();
        for (name, rows) in by_name(rows) {
            let known = before.plugins.get(&name);
            let of = |state: State| rows.iter().find(|row| row.state == state);
            let Some(active) = of(State::Active) else {
                if rows.iter().any(|row| row.active_at.is_some()) {
                    after.deactivated.insert(name);
                }
                continue;
            };
            let found = self.plugin(db, active, known, admitted, refused).await?;
            // What cannot be taken over leaves the old one serving.
            let Some(found) = found.or_else(|| known.map(|known| known.active.clone())) else {
                continue;
            };
            let canary = match of(State::Canary) {
                None => None,
                Some(row) => {
                    let plugin = self.plugin(db, row, known, admitted, refused).await?;
                    plugin.map(|plugin| (plugin, row.share()))
                }
            };
            after.plugins.insert(name, Served { active: found, canary });
        }
        self.0.serving.store(Arc::new(after));
        Ok(())
    }

    /// The plugin of a row: the one that serves already, or one that is admitted now. None: it cannot be here.
    async fn plugin(
        &self,
        db: &Store,
        row: &PluginRow,
        known: Option<&Served>,
        admitted: &[Arc<Plugin>],
        refused: &mut Refused,
    ) -> Result<Option<Arc<Plugin>>> {
        let serving = known.into_iter().flat_map(Served::versions);
        let is_it = |plugin: &&Arc<Plugin>| plugin.digest == row.digest;
        if let Some(plugin) = serving.chain(admitted).find(is_it) {
            refused.remove(&row.digest);
            plugin.health.follow(row.quarantined_at.is_some());
            return Ok(Some(plugin.clone()));
        }
        if refused.contains(&row.digest) {
            return Ok(None);
        }
        let component = async |tx: &mut Tx| store::component(tx, &row.digest).await;
        let Some((wasm,)) = db.select(component).await? else { return Ok(None) };
        match self.admit_known(Arc::new(wasm)).await.plugin {
            Ok(plugin) => {
                tracing::info!(
                    plugin = &*plugin.label,
                    digest = plugin.digest,
                    "plugin taken over"
                );
                plugin.health.follow(row.quarantined_at.is_some());
                Ok(Some(plugin))
            }
            Err(reason) => {
                let (plugin, digest) = (&row.name, &row.digest);
                tracing::error!(plugin, digest, reason, "plugin not taken over");
                refused.insert(row.digest.clone());
                Ok(None)
            }
        }
    }
}

fn by_name(rows: Vec<PluginRow>) -> BTreeMap<String, Vec<PluginRow>> {
    let mut names = BTreeMap::<String, Vec<PluginRow>>::new();
    for row in rows {
        names.entry(row.name.clone()).or_default().push(row);
    }
    names
}

/// The component that serves everyone under this name.
pub async fn serving(db: &Store, name: &str) -> Result<Option<Vec<u8>>> {
    db.read(async |tx| {
        let versions = store::versions(tx, name).await?;
        let active = versions.into_iter().find(|row| row.state == State::Active);
        let Some(row) = active else { return Ok(None) };
        Ok(store::component(tx, &row.digest).await?.map(|(wasm,)| wasm))
    })
    .await
}
