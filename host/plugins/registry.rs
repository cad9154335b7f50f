//! Which plugins serve, and how a new one comes to serve without a restart.
//!
//! The registry is in the database, so every host of a fleet follows it. In memory it is one map that is swapped whole: a
//! request that began on the old version ends on it.

use std::{collections::BTreeMap, sync::Arc};

use arc_swap::ArcSwap;
use schemars::JsonSchema;
use serde::Serialize;
use sha2::{Digest, Sha256};
use tokio::sync::Mutex;

use super::{
    Callable, Gateway, Kind, Limits, Plugin, Provider, Registers, calls::Calls, manifest::Manifest,
    store, v1,
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
type Active = BTreeMap<String, Arc<Plugin>>;

/// The digests of what serves elsewhere and could not be taken over here, by name: compiling them again would change nothing.
type Refused = BTreeMap<String, String>;

/// Of a digest, enough to tell builds of one version apart in logs.
const LABEL_DIGITS: usize = 8;

/// Cheap to clone.
#[derive(Clone)]
pub struct Plugins(Arc<Inner>);

struct Inner {
    calls: Arc<Calls>,
    active: ArcSwap<Active>,
    /// One change at a time, so that none is lost.
    changes: Mutex<Refused>,
    clock: Clock,
}

/// What became of a component that was installed.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "InstalledPlugin")]
pub struct Installed {
    pub name: String,
    pub version: String,
    /// The SHA-256 of the component.
    pub digest: String,
    /// What it implements.
    pub interfaces: Vec<&'static str>,
    /// The version that served until now.
    pub replaces: Option<String>,
    pub manifest: Manifest,
}

impl Plugins {
    pub fn new(
        limits: Limits,
        egress: Egress,
        clock: Clock,
        random: Random,
    ) -> wasmtime::Result<Plugins> {
        let calls = Arc::new(Calls::new(limits, egress, clock.clone(), random)?);
        let active = ArcSwap::default();
        Ok(Plugins(Arc::new(Inner { calls, active, changes: Mutex::default(), clock })))
    }

    #[must_use]
    pub fn provider(&self, name: &str) -> Option<Provider> {
        self.of_kind(name, Kind::Provider).map(Provider)
    }

    #[must_use]
    pub fn gateway(&self, name: &str) -> Option<Gateway> {
        self.of_kind(name, Kind::Sms).map(Gateway)
    }

    #[must_use]
    pub fn registers(&self, country: &str) -> Option<Registers> {
        self.of_kind(country, Kind::Country).map(Registers)
    }

    /// Those of all countries that are installed, sorted by name.
    #[must_use]
    pub fn all_registers(&self) -> Vec<Registers> {
        let active = self.0.active.load();
        let countries = active.values().filter(|plugin| plugin.manifest.kind == Kind::Country);
        countries
            .map(|plugin| Registers(Callable::new(plugin.clone(), self.0.calls.clone())))
            .collect()
    }

    fn of_kind(&self, name: &str, kind: Kind) -> Option<Callable> {
        self.get(name).filter(|plugin| plugin.manifest().kind == kind)
    }

    /// What serves under this name, whatever its kind.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<Callable> {
        let plugin = self.0.active.load().get(name)?.clone();
        Some(Callable::new(plugin, self.0.calls.clone()))
    }

    /// Admits a component that serves nobody: to be measured. `Err` is a reason for the operator.
    pub async fn try_out(&self, wasm: Vec<u8>) -> Result<Callable, String> {
        let plugin = self.admit(Arc::new(wasm)).await?;
        Ok(Callable::new(plugin, self.0.calls.clone()))
    }

    /// The names of the plugins of a kind that are installed, sorted.
    #[must_use]
    pub fn names(&self, kind: Kind) -> Vec<String> {
        let active = self.0.active.load();
        let named = active.iter().filter(|(_, plugin)| plugin.manifest.kind == kind);
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
        let plugins = self.clone();
        let serving = Each(move || plugins.serving());
        registry.register("plugin_serving", "Versions that serve on this host", serving);
    }

    fn serving(&self) -> Vec<(PluginLabels, f64)> {
        let active = self.0.active.load();
        let labels = |plugin: &Arc<Plugin>| {
            let digest = plugin.digest[..LABEL_DIGITS].to_owned();
            [
                ("plugin", plugin.manifest.name.clone()),
                ("version", plugin.manifest.version.to_string()),
                ("digest", digest),
            ]
        };
        active.values().map(|plugin| (labels(plugin), 1.0)).collect()
    }

    /// Admits a component and makes it serve; `also` joins the transaction. What fails leaves the old one serving.
    pub async fn install<F>(&self, db: &Store, wasm: Vec<u8>, also: F) -> Result<Installed>
    where
        F: AsyncFnOnce(&mut Tx, &Manifest, &str) -> Result<()> + Clone + Send + 'static,
    {
        let wasm = Arc::new(wasm);
        let plugin = self.admit(wasm.clone()).await.map_err(Error::Invalid)?;
        let mut refused = self.0.changes.lock().await;
        let (row, now) = (plugin.clone(), self.0.clock.now());
        db.write(async move |tx| {
            let version = row.manifest.version.to_string();
            store::activate(tx, &row.manifest.name, &version, &row.digest, &wasm, now)
                .await
                .map_err(|error| conflict(error, &row.manifest.name))?;
            check_history(tx, &row.manifest).await?;
            also(tx, &row.manifest, &row.digest).await
        })
        .await?;
        refused.remove(&plugin.manifest.name);
        let former = self.swap_in(plugin.clone());
        tracing::info!(plugin = &*plugin.label, digest = plugin.digest, "plugin installed");
        Ok(Installed {
            name: plugin.manifest.name.clone(),
            version: plugin.manifest.version.to_string(),
            digest: plugin.digest.clone(),
            interfaces: plugin.guest.interfaces(),
            replaces: former.map(|former| former.manifest.version.to_string()),
            manifest: plugin.manifest.clone(),
        })
    }

    /// Takes over what the database says serves: at the start, and when another host has changed it.
    pub async fn follow(&self, db: &Store) -> Result<()> {
        let mut refused = self.0.changes.lock().await;
        let rows = db.select(async |tx| store::active(tx).await).await?;
        for row in rows {
            let serves = self.0.active.load().get(&row.name).map(|plugin| plugin.digest.clone());
            if serves.as_ref() == Some(&row.digest) || refused.get(&row.name) == Some(&row.digest) {
                continue;
            }
            let digest = row.digest.clone();
            let found = db.select(async |tx| store::component(tx, &digest).await).await?;
            let Some((wasm,)) = found else { continue };
            match self.admit(Arc::new(wasm)).await {
                Ok(plugin) => {
                    refused.remove(&row.name);
                    self.swap_in(plugin);
                }
                Err(reason) => {
                    tracing::error!(
                        plugin = row.name,
                        digest = row.digest,
                        reason,
                        "plugin not taken over"
                    );
                    refused.insert(row.name, row.digest);
                }
            }
        }
        Ok(())
    }

    fn swap_in(&self, plugin: Arc<Plugin>) -> Option<Arc<Plugin>> {
        let mut active = Active::clone(&self.0.active.load());
        let former = active.insert(plugin.manifest.name.clone(), plugin);
        self.0.active.store(Arc::new(active));
        former
    }

    /// Everything that is asked of a component before it serves anyone; `Err` is a reason for the operator.
    async fn admit(&self, wasm: Arc<Vec<u8>>) -> Result<Arc<Plugin>, String> {
        let most = self.most_component_bytes();
        if wasm.len() > most {
            return Err(format!("the component is larger than {most} bytes"));
        }
        let manifest = Manifest::read(&wasm)?;
        let digest = hex::encode(Sha256::digest(&*wasm));
        let calls = self.0.calls.clone();
        let compiling = {
            let (calls, digest) = (calls.clone(), digest.clone());
            move || calls.compile(&digest, &wasm)
        };
        let component = tokio::task::spawn_blocking(compiling)
            .await
            .map_err(|_| "compiling the component panicked".to_owned())??;
        let guest = v1::Guest::load(&calls.linker, &component, manifest.kind)?;
        manifest.check_country(&guest.interfaces())?;
        let (name, version): (Arc<str>, _) =
            ((&*manifest.name).into(), manifest.version.to_string());
        let label: Arc<str> = format!("{name}@{version}+{}", &digest[..LABEL_DIGITS]).into();
        calls.try_out(&guest, label.clone()).await?;
        let meter = calls.metrics.plugin(name.clone(), &version);
        Ok(Arc::new(Plugin { manifest, digest, label, name, meter, guest }))
    }
}

/// The component that serves under this name.
pub async fn serving(db: &Store, name: &str) -> Result<Option<Vec<u8>>> {
    db.read(async |tx| {
        let Some(row) = store::active(tx).await?.into_iter().find(|row| row.name == name) else {
            return Ok(None);
        };
        Ok(store::component(tx, &row.digest).await?.map(|(wasm,)| wasm))
    })
    .await
}

/// After `activate`, which waits for another host that installs the same name: no version escapes the comparison.
async fn check_history(tx: &mut Tx, manifest: &Manifest) -> Result<()> {
    for (digest,) in store::digests(tx, &manifest.name).await? {
        if let Some((wasm,)) = store::component(tx, &digest).await? {
            manifest.check_against(&wasm).map_err(Error::Invalid)?;
        }
    }
    Ok(())
}

fn conflict(error: crate::store::Error, name: &str) -> Error {
    if crate::store::is_duplicate(&error) {
        let message = format!(
            "{name} is being installed by another host, look which version serves and try again"
        );
        return Error::Conflict(message);
    }
    error.into()
}
