//! A plugin with everything that its calls need, and the grants that follow from credentials.

use std::{
    collections::{BTreeMap, HashMap},
    ops::Deref,
    sync::Arc,
    time::{Duration, Instant},
};

use super::{executor::CallExecutor, log::LoggedCall, outcome};
use crate::metrics::{PluginMeter, PluginMetrics};
use crate::{
    Call, CallError, Manifest, NotificationRefusal, PluginReply,
    admission::LABEL_DIGITS,
    contract::v1,
    limits::{bulkhead::Bulkhead, health::Health},
    runtime::{
        progress::{Progress, Usage},
        session::Grant,
        transcript::{CompletedCall, Recorder, Transcript},
        vault::Secrets,
    },
    statistics::CallSummary,
};
use tollhouse_platform::{
    clock::{Clock, Timestamp},
    error::Error,
    outbound::egress::{Egress, Script},
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

    /// Returns the calls of this version on this host since its start.
    pub fn calls(&self) -> CallSummary {
        self.meter.statistics.summary()
    }

    /// Returns whether the version is in quarantine, perhaps not saved in the registry yet.
    pub fn is_quarantined(&self) -> bool {
        !self.health.is_healthy()
    }

    /// Returns the interfaces that the component exports.
    #[must_use]
    pub fn interfaces(&self) -> Vec<&'static str> {
        self.guest.offers.names()
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
    pub(super) bulkhead: Arc<Bulkhead>,
    calls: Arc<CallExecutor>,
    /// The company on whose behalf calls are made; empty for the service itself.
    pub(super) company: Arc<str>,
    observer: Option<UsageObserver>,
    /// Recorded cache reads and vault results, set in a replay.
    replayed: Option<Arc<Transcript>>,
}

/// Handles, one type per kind of plugin; [`crate::contract::v1::functions`] declares their methods.
macro_rules! handles {
    ($($name:ident),+) => {$(
        #[derive(Clone)]
        pub struct $name(pub(crate) PluginHandle);

        impl Deref for $name {
            type Target = PluginHandle;

            fn deref(&self) -> &PluginHandle {
                &self.0
            }
        }
    )+};
}
handles!(Provider, Gateway, CountryPlugin);

/// Random seed of every replay.
const REPLAY_SEED: u64 = 1;

/// Receives the resource usage of each call.
pub type UsageObserver = Arc<dyn Fn(Usage) + Send + Sync>;

impl PluginHandle {
    /// Returns a handle with a bulkhead of its own, not shared with other versions.
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

    /// Returns a handle that makes calls on behalf of a company.
    #[must_use]
    pub fn for_company(self, company: &str) -> PluginHandle {
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

    /// Returns a handle that reports the usage of each call to `observer`.
    #[must_use]
    pub fn with_observer(self, observer: UsageObserver) -> PluginHandle {
        PluginHandle { observer: Some(observer), ..self }
    }

    /// Returns the maximum duration of a call.
    #[must_use]
    pub fn max_call_duration(&self) -> Duration {
        self.calls.limits.wall_clock
    }

    #[must_use]
    pub fn exports(&self, interface: &str) -> bool {
        self.plugin.interfaces().contains(&interface)
    }

    /// Returns a handle for replays: the clock is frozen at `began`, cache and vault return the
    /// values in `replayed`, `script` replaces the upstream, and `recorder` receives the new
    /// recording. No request leaves the host, and metrics are separate.
    #[must_use]
    pub fn for_replay(
        &self,
        began: Timestamp,
        replayed: Transcript,
        script: Arc<Script>,
        recorder: Recorder,
    ) -> PluginHandle {
        let mut calls = self.calls.with_script(script);
        (calls.clock, calls.random) = (Clock::frozen_at(began), Random::seeded(REPLAY_SEED));
        calls.recorder = recorder.into();
        let calls = Arc::new(calls);
        let plugin = Arc::new(self.plugin.with_metrics(&calls.metrics));
        PluginHandle {
            replayed: Some(Arc::new(replayed)),
            ..PluginHandle::standalone(plugin, calls)
        }
    }

    /// Makes a call. Records it if the host has a recorder, unless its data are personal.
    pub async fn execute(
        &self,
        credentials: &Credentials,
        call: &Call,
    ) -> Result<PluginReply, CallError> {
        let recorder = self.calls.recorder.get().filter(|_| !call.is_personal());
        let (grant, began) = (self.grant(credentials), self.calls.clock.now());
        let started = Instant::now();
        let transcript = recorder.map(|_| Transcript::default());
        let mut progress = Progress { transcript, ..Progress::default() };
        let result = self.calls.call(self, call, grant.clone(), &mut progress).await;
        if let Some(watch) = &self.observer {
            watch(progress.usage);
        }
        // A rejected call says nothing about the plugin.
        if let Some(log) = self.calls.log.get().filter(|_| progress.usage.runs > 0) {
            log(LoggedCall::new(self, call, &result, began, started.elapsed()));
        }
        // Anyone can send a webhook that the provider did not sign.
        let forged =
            matches!(result, Ok(PluginReply::Parsed(Err(NotificationRefusal::Unauthentic))));
        if let Some(recorder) = recorder
            && let Some(transcript) = progress.transcript.filter(|_| progress.usage.runs > 0)
            && (!forged || self.replayed.is_some())
        {
            recorder(CompletedCall {
                plugin: self.clone(),
                company: self.company.clone(),
                began,
                call: match call {
                    Call::ParseNotification(webhook) => {
                        Call::ParseNotification(webhook.without_secrets(&grant))
                    }
                    Call::ReceiveForSession(session, webhook) => {
                        let webhook = webhook.without_secrets(&grant);
                        Call::ReceiveForSession(session.clone(), webhook)
                    }
                    Call::ReceiveForRefund(refund, webhook) => {
                        Call::ReceiveForRefund(refund.clone(), webhook.without_secrets(&grant))
                    }
                    _ => call.clone(),
                },
                settings: self.manifest().explicit_settings(credentials),
                secrets: grant.secrets.names(),
                transcript,
                outcome: outcome::outcome(&result),
                summary: result.as_ref().map_or("", PluginReply::summary),
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
        let addresses: BTreeMap<&str, String> = urls
            .filter_map(|(name, _)| {
                let url = url::Url::parse(settings.get(name)?).ok()?;
                Some((name.as_str(), url.origin().ascii_serialization()))
            })
            .collect();
        let host = |host: &str| format!("https://{host}");
        let is_host = |name: &str| self.hosts.iter().any(|host| host == name);
        let origin_of = |to: &str| match is_host(to) {
            true => Some(host(to)),
            false => addresses.get(to).cloned(),
        };
        let bound = self.secrets.account_bindings(origin_of).collect();
        Grant {
            scope: credentials.id.clone(),
            secrets: Secrets::new(secrets.collect()).with_bindings(bound),
            origins: self
                .hosts
                .iter()
                .map(|name| host(name))
                .chain(addresses.into_values())
                .collect(),
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
        let settings = self.settings.iter();
        let needed = settings.filter(|(_, s)| s.default.is_none()).map(|(name, _)| name);
        let needed = self.secrets.names().chain(needed);
        let missing: Vec<&String> =
            needed.filter(|name| !self.optional.contains(name) && !given(name)).collect();
        let mut unknown: Vec<&String> =
            values.keys().filter(|name| !self.has_credential(name)).collect();
        unknown.sort();
        let urls = self.settings.iter().filter(|(_, setting)| setting.kind == "url");
        let urls = urls.filter(|(name, _)| !missing.contains(name));
        let wrong = urls.filter_map(|(name, _)| {
            let what = egress.check_base(values.get(name)?).err()?;
            Some(format!("the credentials.{name} field must be {what}"))
        });
        let [one, ones] =
            ["one", "ones"].map(|which| format!("must be {which} that {} uses", self.name));
        let faults: Vec<String> = describe_fields(&missing, "is required", "are required")
            .into_iter()
            .chain(describe_fields(&unknown, &one, &ones))
            .chain(wrong)
            .collect();
        match faults.is_empty() {
            true => Ok(()),
            false => Err(Error::Invalid(faults.join("; "))),
        }
    }
}

/// Lists the fields, followed by `one` or `several`; `None` if there are none.
fn describe_fields(names: &[&String], one: &str, several: &str) -> Option<String> {
    let names: Vec<String> = names.iter().map(|name| format!("credentials.{name}")).collect();
    match &names[..] {
        [] => None,
        [name] => Some(format!("the {name} field {one}")),
        [first @ .., last] => Some(format!("the {} and {last} fields {several}", first.join(", "))),
    }
}
