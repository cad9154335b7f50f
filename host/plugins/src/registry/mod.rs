//! The plugins that serve on this host.

pub mod lifecycle;
pub mod registry_sync;
pub mod serving;
pub mod store;
pub mod versions;

use arc_swap::ArcSwap;

use super::{
    CallLog, CountryPlugin, Gateway, Limits, Provider, Recorder,
    admission::{self, Admission, AdmissionCheck, AdmissionMode, LABEL_DIGITS},
};
use crate::prelude::*;
use crate::{
    admission::{publishers::TrustPolicy, signature},
    call::executor::CallExecutor,
    registry::{
        registry_sync::RegistrySync,
        serving::{PinnedVersions, ServingPlugins, ServingVersions, Unavailability},
        store::PluginRow,
        versions::VersionState,
    },
};
use tollhouse_platform::{
    error::Result,
    outbound::egress::Egress,
    telemetry::{Registry, computed_gauge, computed_gauges},
};

type PluginLabels = [(&'static str, String); 3];

/// A circuit breaker that rejects calls of a company, or requests of one provider account to an
/// origin.
#[derive(Debug, Serialize, JsonSchema)]
pub struct OpenCircuit {
    /// Id of the company whose calls broke the plugin; empty for the service itself.
    pub company: Option<String>,
    /// Origin that did not respond to requests of one account.
    pub origin: Option<String>,
    /// Seconds until the next probe; 0 if it is due or in progress.
    pub retry_after_s: u32,
}

/// The plugins of a host; cheap to clone. A clone for an operation keeps its chosen versions.
#[derive(Clone)]
pub struct Plugins(pub(crate) Arc<Inner>, Option<PinnedVersions>);

pub(crate) struct Inner {
    pub calls: Arc<CallExecutor>,
    pub serving: ArcSwap<ServingPlugins>,
    pub registry_sync: RegistrySync,
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
        let calls = Arc::new(CallExecutor::new(limits, egress, clock.clone(), random.clone())?);
        let (serving, registry_sync) = (ArcSwap::default(), RegistrySync::default());
        Ok(Plugins(Arc::new(Inner { calls, serving, registry_sync, clock, random }), None))
    }

    /// Returns the plugins for one operation, which uses one version of each.
    #[must_use]
    pub fn for_operation(&self) -> Plugins {
        Plugins(self.0.clone(), Some(PinnedVersions::default()))
    }

    /// Returns the version for this company; 400 if unknown or deactivated, 503 if not loaded here.
    pub fn provider(&self, name: &str, company: &str) -> Result<Provider> {
        let serving = self.serving(name, company, PluginKind::Provider);
        serving.map(Provider).ok_or_else(|| match self.unavailability(name) {
            Some(absence) => absence.to_error(name),
            None => Error::invalid("payment service key not found"),
        })
    }

    pub fn gateway(&self, name: &str, company: &str) -> Option<Gateway> {
        self.serving(name, company, PluginKind::Sms).map(Gateway)
    }

    pub fn country_plugin(&self, country: &str, company: &str) -> Option<CountryPlugin> {
        self.serving(country, company, PluginKind::Country).map(CountryPlugin)
    }

    /// Returns a country's registers in the active version.
    pub fn active_country_plugin(&self, country: &str) -> Option<CountryPlugin> {
        self.get(country)
            .filter(|plugin| plugin.manifest().kind == PluginKind::Country)
            .map(CountryPlugin)
    }

    /// Returns the active registers of all countries, sorted by name.
    pub fn active_country_plugins(&self) -> Vec<CountryPlugin> {
        let countries = self.names(PluginKind::Country);
        countries.iter().filter_map(|country| self.active_country_plugin(country)).collect()
    }

    pub fn serving_version(&self, name: &str, digest: &str) -> Option<Arc<Plugin>> {
        let serving = self.0.serving.load();
        serving.plugins.get(name)?.versions().find(|plugin| plugin.digest == digest).cloned()
    }

    /// Returns the versions that serve on this host, each with `true` if it is the canary.
    pub fn serving_versions(&self) -> Vec<(Arc<Plugin>, bool)> {
        let serving = self.0.serving.load();
        let versions = serving.plugins.values().flat_map(|served| {
            let canary = served.canary.iter().map(|(canary, _)| (canary.clone(), true));
            std::iter::once((served.active.clone(), false)).chain(canary)
        });
        versions.collect()
    }

    /// Returns the open circuits of a version on this host.
    pub fn open_circuits(&self, plugin: &Plugin) -> Vec<OpenCircuit> {
        let now = self.0.clock.now();
        let of_companies = plugin.health.breakers.list_open("", now);
        let of_companies = of_companies.into_iter().map(|(company, retry_after_s)| OpenCircuit {
            company: Some(company),
            origin: None,
            retry_after_s,
        });
        // The key names the provider account, whose id is secret, and the origin.
        let prefix = format!("{}/", plugin.digest);
        let breakers = self.0.calls.breakers.as_ref();
        let of_upstreams = breakers.map(|breakers| breakers.list_open(&prefix, now));
        let of_upstreams = of_upstreams.into_iter().flatten().map(|(key, retry_after_s)| {
            let origin = key.split_once(' ').map(|(_, origin)| origin.to_owned());
            OpenCircuit { company: None, origin, retry_after_s }
        });
        of_companies.chain(of_upstreams).collect()
    }

    fn serving(&self, name: &str, company: &str, kind: PluginKind) -> Option<PluginHandle> {
        let choose = || {
            let serving = self.0.serving.load();
            let served = serving.plugins.get(name)?;
            let plugin = served.choose(company, &self.0.random, self.0.clock.now());
            Some(self.handle(served, plugin).for_company(company))
        };
        let chosen = match &self.1 {
            Some(choices) => choices.get_or_pin(name, company, choose),
            None => choose(),
        };
        chosen.filter(|chosen| chosen.manifest().kind == kind)
    }

    /// Returns the active version of a plugin of any kind.
    pub fn get(&self, name: &str) -> Option<PluginHandle> {
        let serving = self.0.serving.load();
        let served = serving.plugins.get(name)?;
        Some(self.handle(served, served.active.clone()))
    }

    /// Sets the recorder of calls, unless one is set.
    pub fn set_recorder(&self, recorder: Recorder) {
        let _ = self.0.calls.recorder.set(recorder);
    }

    /// Sets the log of calls, unless one is set.
    pub fn set_call_log(&self, log: CallLog) {
        let _ = self.0.calls.log.set(log);
    }

    fn handle(&self, served: &ServingVersions, plugin: Arc<Plugin>) -> PluginHandle {
        PluginHandle::with_bulkhead(served.bulkhead.clone(), plugin, self.0.calls.clone())
    }

    fn standalone_handle(&self, plugin: Arc<Plugin>) -> PluginHandle {
        PluginHandle::standalone(plugin, self.0.calls.clone())
    }

    /// Returns why an installed plugin does not serve.
    pub fn unavailability(&self, name: &str) -> Option<Unavailability> {
        self.0.serving.load().unavailable.get(name).copied()
    }

    /// Returns 503 if the plugin is active but not loaded here, so that its rules are unknown.
    pub fn ensure_ready(&self, name: &str) -> Result<()> {
        match self.unavailability(name) {
            Some(absence @ Unavailability::NotReady) => Err(absence.to_error(name)),
            Some(Unavailability::Deactivated) | None => Ok(()),
        }
    }

    /// Admits a component without installing it. `Err` is a reason for the operator.
    pub async fn admit_without_install(&self, wasm: Vec<u8>) -> Result<PluginHandle, String> {
        let admission = self.readmit(Arc::new(wasm)).await;
        admission.plugin.map(|plugin| self.standalone_handle(plugin))
    }

    /// Admits a component for its author. The plugin is `None` if a check failed.
    pub async fn inspect(&self, wasm: Vec<u8>) -> (Vec<AdmissionCheck>, Option<PluginHandle>) {
        let admission =
            admission::admit(&self.0.calls, Arc::new(wasm), AdmissionMode::Author).await;
        (admission.checks, admission.plugin.ok().map(|plugin| self.standalone_handle(plugin)))
    }

    pub fn trust(&self) -> &TrustPolicy {
        &self.0.calls.limits.trust
    }

    /// Admits a stored version if signature and digest are valid. Inner `Err`: for the operator.
    pub(crate) async fn admit_stored(
        &self,
        db: &Store,
        row: &PluginRow,
    ) -> Result<Result<Arc<Plugin>, String>> {
        let wasm = match load_component(db, row, self.trust()).await? {
            Ok(wasm) => Arc::new(wasm),
            Err(reason) => return Ok(Err(reason)),
        };
        let plugin = self.readmit(wasm).await.plugin;
        Ok(plugin.and_then(|plugin| match &plugin.manifest.name {
            name if *name == row.name => Ok(plugin),
            name => Err(format!("the component belongs to the plugin {name}")),
        }))
    }

    /// Admits a component that passed all checks when it was installed.
    pub(crate) async fn readmit(&self, wasm: Arc<Vec<u8>>) -> Admission {
        admission::admit(&self.0.calls, wasm, AdmissionMode::Readmission).await
    }

    /// Returns the names of the active plugins of a kind, sorted.
    pub fn names(&self, kind: PluginKind) -> Vec<String> {
        let serving = self.0.serving.load();
        let named = serving.plugins.iter().filter(|(_, one)| one.active.manifest.kind == kind);
        named.map(|(name, _)| name.clone()).collect()
    }

    pub fn max_component_bytes(&self) -> usize {
        self.0.calls.limits.component_bytes
    }

    pub fn register(&self, registry: &mut Registry) {
        let calls = &self.0.calls;
        calls.metrics.register(registry);
        let (slots, all) = (calls.slots.clone(), calls.limits.instances);
        let in_use = move || f64::from(all) - slots.available_permits() as f64;
        registry.register("plugin_instances_in_use", "Instances in use", computed_gauge(in_use));
        registry.register(
            "plugin_instances_limit",
            "Instance limit",
            computed_gauge(move || f64::from(all)),
        );
        let breakers = calls.breakers.clone();
        let clock = calls.clock.clone();
        let open =
            move || breakers.as_ref().map_or(0, |breakers| breakers.open_count(clock.now())) as f64;
        let what = "Open circuits of accounts and upstreams";
        registry.register("plugin_open_circuits", what, computed_gauge(open));
        let plugins = self.clone();
        let serving = computed_gauges(move || plugins.serving_labels());
        registry.register("plugin_serving", "Versions that receive calls on this host", serving);
        let plugins = self.clone();
        let not_ready = computed_gauge(move || {
            let serving = plugins.0.serving.load();
            let absences = serving.unavailable.values();
            absences.filter(|absence| **absence == Unavailability::NotReady).count() as f64
        });
        let what = "Active plugins that are not loaded on this host";
        registry.register("plugin_not_ready", what, not_ready);
    }

    fn serving_labels(&self) -> Vec<(PluginLabels, f64)> {
        let labels = |plugin: &Arc<Plugin>| {
            let Plugin { manifest, digest, .. } = &**plugin;
            [
                ("plugin", manifest.name.clone()),
                ("version", manifest.version.to_string()),
                ("digest", digest[..LABEL_DIGITS].to_owned()),
            ]
        };
        let serving = self.0.serving.load();
        let versions = serving.plugins.values().flat_map(ServingVersions::versions);
        versions.map(|plugin| (labels(plugin), 1.0)).collect()
    }
}

/// Returns the component of the active version. Error 400: it is not trusted.
pub async fn serving(db: &Store, name: &str, trust: &TrustPolicy) -> Result<Option<Vec<u8>>> {
    let versions = db.select(async |tx| store::list_versions(tx, name).await).await?;
    match versions.iter().find(|row| row.state == VersionState::Active) {
        Some(row) => load_component(db, row, trust).await?.map(Some).map_err(Error::Invalid),
        None => Ok(None),
    }
}

/// Returns a version's component if signature and digest are valid.
async fn load_component(
    db: &Store,
    row: &PluginRow,
    trust: &TrustPolicy,
) -> Result<Result<Vec<u8>, String>> {
    if let Err(reason) = db.select(async |tx| trust.check_stored(tx, row).await).await? {
        return Ok(Err(reason));
    }
    let component = db.select(async |tx| store::find_component(tx, &row.digest).await).await?;
    Ok(match component {
        Some(wasm) if signature::digest(&wasm) == row.digest => Ok(wasm),
        Some(_) => Err("the component stored under its digest is a different one".to_owned()),
        None => Err("its component is missing".to_owned()),
    })
}
