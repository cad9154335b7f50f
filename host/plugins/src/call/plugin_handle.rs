//! A plugin with everything that its calls need, and the grants that follow from credentials.

use std::{collections::HashMap, sync::Arc};

use super::{
    executor::{CallExecutor, Invoke},
    outcome,
    reply::{ResultSummary, UNAUTHENTIC},
};
use crate::metrics::{PluginMeter, PluginMetrics};
use crate::{
    Call, CallError, Manifest,
    admission::LABEL_DIGITS,
    contract::v1,
    limits::{bulkhead::Bulkhead, health::Health},
    runtime::{
        progress::{Progress, Usage},
        session::Grant,
        transcript::{CompletedCall, Recorder, Transcript},
        vault::Secrets,
    },
};
use tollhouse_platform::{
    clock::{Clock, Timestamp},
    error::Error,
    outbound::egress::{Egress, EgressError, EgressRequest, EgressResponse},
    random::Random,
};

/// An admitted component.
pub struct Plugin {
    pub manifest: Manifest,
    /// SHA-256 of the component in hexadecimal.
    pub digest: String,
    /// `name@version+digest` with the first digits of the digest, for logs.
    pub label: Arc<str>,
    pub(crate) name: Arc<str>,
    pub(crate) meter: PluginMeter,
    pub(crate) guest: v1::Guest,
    pub(crate) health: Health,
}

impl Plugin {
    pub(crate) fn new(
        manifest: Manifest,
        digest: String,
        guest: v1::Guest,
        metrics: &PluginMetrics,
    ) -> Plugin {
        let (name, version): (Arc<str>, _) =
            ((&*manifest.name).into(), manifest.version.to_string());
        let label = format!("{name}@{version}+{}", &digest[..LABEL_DIGITS]).into();
        let meter = metrics.plugin(name.clone(), &version, &digest[..LABEL_DIGITS]);
        Plugin { manifest, digest, label, name, meter, guest, health: Health::default() }
    }

    /// Returns the interfaces that the component exports.
    #[must_use]
    pub fn interfaces(&self) -> Vec<&'static str> {
        self.guest.interfaces()
    }

    /// Returns a copy whose calls count in other metrics.
    pub(crate) fn with_metrics(&self, metrics: &PluginMetrics) -> Plugin {
        let (manifest, digest) = (self.manifest.clone(), self.digest.clone());
        Plugin::new(manifest, digest, self.guest.clone(), metrics)
    }
}

/// The credentials of one account: `id` identifies it, `values` are keyed as in the manifest.
#[derive(Clone, Default)]
pub struct Credentials {
    pub id: String,
    pub values: HashMap<String, String>,
}

/// A callable plugin. It keeps its version even after another version becomes active.
#[derive(Clone)]
pub struct PluginHandle {
    pub(crate) plugin: Arc<Plugin>,
    /// Limits shared with the other serving versions of the plugin.
    bulkhead: Arc<Bulkhead>,
    calls: Arc<CallExecutor>,
    /// The company on whose behalf calls are made; empty for the service itself.
    company: Arc<str>,
    observer: Option<UsageObserver>,
    /// Recorded cache reads and vault results, set in a replay.
    replayed: Option<Arc<Transcript>>,
}

/// The target of a call, and the company on whose behalf it is made.
#[derive(Clone, Copy)]
pub struct CallTarget<'c> {
    pub plugin: &'c Plugin,
    pub bulkhead: &'c Bulkhead,
    pub company: &'c str,
}

/// Random seed of every replay.
const REPLAY_SEED: u64 = 1;

/// Receives the resource usage of each call.
pub type UsageObserver = Arc<dyn Fn(Usage) + Send + Sync>;

impl PluginHandle {
    /// Returns a callable with a bulkhead of its own, not shared with other versions.
    pub(crate) fn standalone(plugin: Arc<Plugin>, calls: Arc<CallExecutor>) -> PluginHandle {
        let bulkhead = Arc::new(Bulkhead::new(&calls.limits));
        PluginHandle::with_bulkhead(bulkhead, plugin, calls)
    }

    pub(crate) fn with_bulkhead(
        bulkhead: Arc<Bulkhead>,
        plugin: Arc<Plugin>,
        calls: Arc<CallExecutor>,
    ) -> PluginHandle {
        PluginHandle {
            plugin,
            bulkhead,
            calls,
            company: Arc::default(),
            observer: None,
            replayed: None,
        }
    }

    pub(crate) fn for_company(self, company: &str) -> PluginHandle {
        PluginHandle { company: company.into(), ..self }
    }

    #[must_use]
    pub fn manifest(&self) -> &Manifest {
        &self.plugin.manifest
    }

    #[must_use]
    pub fn digest(&self) -> &str {
        &self.plugin.digest
    }

    #[must_use]
    pub fn label(&self) -> &str {
        &self.plugin.label
    }

    /// Returns a callable that reports the usage of each call to `watch`.
    #[must_use]
    pub fn with_observer(self, observer: UsageObserver) -> PluginHandle {
        PluginHandle { observer: Some(observer), ..self }
    }

    #[must_use]
    pub fn exports(&self, interface: &str) -> bool {
        self.plugin.guest.interfaces().contains(&interface)
    }

    /// Returns a callable for replays: the clock stands at `began`, cache and vault return the
    /// values in `known`, `script` replaces the upstream, and `recorder` receives the new
    /// recording. No request leaves the host, and metrics are separate.
    #[must_use]
    pub fn for_replay(
        &self,
        began: Timestamp,
        replayed: Transcript,
        script: impl Fn(&EgressRequest) -> Result<EgressResponse, EgressError> + Send + Sync + 'static,
        recorder: Recorder,
    ) -> PluginHandle {
        let (clock, random) = (Clock::frozen_at(began), Random::seeded(REPLAY_SEED));
        let calls = Arc::new(self.calls.with_script_at(clock, random, script));
        let _ = calls.recorder.set(recorder);
        let plugin = Arc::new(self.plugin.with_metrics(&calls.metrics));
        PluginHandle {
            replayed: Some(Arc::new(replayed)),
            ..PluginHandle::standalone(plugin, calls)
        }
    }

    /// Makes a call that must not be recorded.
    pub(crate) async fn call<'f, T>(
        &self,
        function: &'static str,
        credentials: &Credentials,
        invoke: &Invoke<'f, T>,
    ) -> Result<T, CallError> {
        let grant = self.grant(credentials);
        self.execute_call(function, grant, invoke, &mut Progress::default()).await
    }

    /// Makes a call, and records it if the host has a recorder.
    pub(crate) async fn call_recorded<'f, T: ResultSummary>(
        &self,
        function: &'static str,
        to_call: impl FnOnce() -> Call,
        credentials: &Credentials,
        invoke: &Invoke<'f, T>,
    ) -> Result<T, CallError> {
        let Some(recorder) = self.calls.recorder.get() else {
            return self.call(function, credentials, invoke).await;
        };
        let (grant, began) = (self.grant(credentials), self.calls.clock.now());
        let mut progress =
            Progress { transcript: Some(Transcript::default()), ..Progress::default() };
        let result = self.execute_call(function, grant.clone(), invoke, &mut progress).await;
        let summary = result.as_ref().map_or("", ResultSummary::summary);
        if let Some(transcript) = progress.transcript.filter(|_| progress.usage.runs > 0)
            && (summary != UNAUTHENTIC || self.replayed.is_some())
        {
            recorder(CompletedCall {
                plugin: self.clone(),
                company: self.company.clone(),
                began,
                call: to_call().without_secrets(&grant),
                settings: self.manifest().explicit_settings(credentials),
                secrets: grant.secrets.names(),
                transcript,
                outcome: outcome::outcome(&result).name(),
                summary,
                fault: result.as_ref().err().map(|error| error.fault.clone()),
            });
        }
        result
    }

    fn grant(&self, credentials: &Credentials) -> Arc<Grant> {
        let mut grant = self.manifest().grant(credentials);
        grant.scope = format!("{}/{}", self.plugin.digest, grant.scope);
        grant.replayed.clone_from(&self.replayed);
        Arc::new(grant)
    }

    async fn execute_call<'f, T>(
        &self,
        function: &'static str,
        grant: Arc<Grant>,
        invoke: &Invoke<'f, T>,
        progress: &mut Progress,
    ) -> Result<T, CallError> {
        let called =
            CallTarget { plugin: &self.plugin, bulkhead: &self.bulkhead, company: &self.company };
        let result = self.calls.call(called, function, grant, invoke, progress).await;
        if let Some(watch) = &self.observer {
            watch(progress.usage);
        }
        result
    }
}

impl Manifest {
    /// Returns the settings in the credentials, without defaults, which differ between versions.
    fn explicit_settings(&self, credentials: &Credentials) -> HashMap<String, String> {
        let values = credentials.values.iter();
        let settings = values.filter(|(name, _)| self.settings.contains_key(*name));
        settings.map(|(name, value)| (name.clone(), value.clone())).collect()
    }

    /// Returns what the plugin may use with these credentials: its secrets, its settings or their
    /// defaults, and the origins of its hosts and URL settings.
    pub(crate) fn grant(&self, credentials: &Credentials) -> Grant {
        let given = |name: &String| credentials.values.get(name).cloned();
        let secrets = self.secrets.names().filter_map(|name| Some((name.clone(), given(name)?)));
        let settings: HashMap<String, String> = self
            .settings
            .iter()
            .filter_map(|(name, setting)| {
                Some((name.clone(), given(name).or_else(|| setting.default.clone())?))
            })
            .collect();
        let urls = self.settings.iter().filter(|(_, setting)| setting.kind == "url");
        let address = |name: &str| {
            let url = url::Url::parse(settings.get(name)?).ok()?;
            Some(url.origin().ascii_serialization())
        };
        let host = |host: &str| format!("https://{host}");
        let is_host = |name: &str| self.hosts.iter().any(|host| host == name);
        let origin_of = |to: &str| if is_host(to) { Some(host(to)) } else { address(to) };
        let bound = self.secrets.account_bindings(origin_of).collect();
        Grant {
            scope: credentials.id.clone(),
            origins: self
                .hosts
                .iter()
                .map(|name| host(name))
                .chain(urls.filter_map(|(name, _)| address(name)))
                .collect(),
            secrets: Secrets::new(secrets.collect()).with_bindings(bound),
            settings,
            replayed: None,
        }
    }

    /// Checks credentials. The error names missing and unknown ones, and unusable URLs.
    pub fn check_credentials(
        &self,
        values: &HashMap<String, String>,
        egress: &Egress,
    ) -> Result<(), Error> {
        let given = |name: &str| values.get(name).is_some_and(|value| !value.is_empty());
        let known = |name: &String| self.secrets.contains(name) || self.settings.contains_key(name);
        let settings = self.settings.iter();
        let needed = settings.filter(|(_, s)| s.default.is_none()).map(|(name, _)| name);
        let needed = self.secrets.names().chain(needed);
        let missing: Vec<&String> =
            needed.filter(|name| !self.optional.contains(name) && !given(name)).collect();
        let mut unknown: Vec<&String> = values.keys().filter(|name| !known(name)).collect();
        unknown.sort();
        let urls = self.settings.iter().filter(|(_, setting)| setting.kind == "url");
        let urls = urls.filter(|(name, _)| !missing.contains(name));
        let wrong: Vec<(&String, &str)> = urls
            .filter_map(|(name, _)| Some((name, egress.check_base(values.get(name)?).err()?)))
            .collect();

        let missing = format_names(&missing).map(|(which, many)| {
            format!("{which} {}", if many { "are required" } else { "is required" })
        });
        let unknown = format_names(&unknown).map(|(which, many)| {
            format!("{which} must be {} that {} uses", if many { "ones" } else { "one" }, self.name)
        });
        let wrong = wrong
            .into_iter()
            .map(|(name, what)| format!("the credentials.{name} field must be {what}"));
        let faults: Vec<String> = missing.into_iter().chain(unknown).chain(wrong).collect();
        match faults.is_empty() {
            true => Ok(()),
            false => Err(Error::Invalid(faults.join("; "))),
        }
    }
}

/// Formats names for a sentence, and returns whether they are several; `None` if there are none.
fn format_names(names: &[&String]) -> Option<(String, bool)> {
    let names: Vec<String> = names.iter().map(|name| format!("credentials.{name}")).collect();
    match &names[..] {
        [] => None,
        [one] => Some((format!("the {one} field"), false)),
        [first @ .., last] => Some((format!("the {} and {last} fields", first.join(", ")), true)),
    }
}
