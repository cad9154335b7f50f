//! A plugin with all that a call of it needs, whatever its kind; and what an account's credentials let it use.

use std::{collections::HashMap, sync::Arc};

use super::{
    Call, CallError, Manifest,
    admission::LABEL_DIGITS,
    bulkhead::Bulkhead,
    calls::{self, Calls, Invoke},
    health::Health,
    heard::{Heard, Recorded, Recorder},
    progress::{Progress, Usage},
    reply::{End, UNAUTHENTIC},
    session::Grant,
    v1,
    vault::Secrets,
};
use crate::{
    clock::{Clock, Timestamp},
    egress::{Answer, Egress, EgressError, Outgoing},
    error::Error,
    random::Random,
    telemetry::{PluginMeter, PluginMetrics},
};

/// A component that was admitted.
pub struct Plugin {
    pub manifest: Manifest,
    /// SHA-256 of the component, hexadecimal.
    pub digest: String,
    /// `name@version+digest` with the first digits of the digest, for logs.
    pub label: Arc<str>,
    pub(super) name: Arc<str>,
    pub(super) meter: PluginMeter,
    pub(super) guest: v1::Guest,
    pub(super) health: Health,
}

impl Plugin {
    pub(super) fn new(
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

    /// The same, whose calls count elsewhere.
    pub(super) fn measured_apart(&self, metrics: &PluginMetrics) -> Plugin {
        let (manifest, digest) = (self.manifest.clone(), self.digest.clone());
        Plugin::new(manifest, digest, self.guest.clone(), metrics)
    }
}

/// One set of credentials: `id` tells it from others, `values` are named as in the plugin's manifest.
#[derive(Clone, Default)]
pub struct Credentials {
    pub id: String,
    pub values: HashMap<String, String>,
}

/// A plugin that can be called. It stays the version that it was when it was asked for.
#[derive(Clone)]
pub struct Callable {
    pub(super) plugin: Arc<Plugin>,
    /// What its calls share with those of other versions that serve.
    bulkhead: Arc<Bulkhead>,
    calls: Arc<Calls>,
    /// For whom; empty: for the service itself.
    company: Arc<str>,
    watch: Option<Watch>,
    /// What cache and vault say when a call is made once more.
    known: Option<Arc<Heard>>,
}

/// What is called, and for whom.
#[derive(Clone, Copy)]
pub struct Called<'c> {
    pub plugin: &'c Plugin,
    /// What its calls share.
    pub bulkhead: &'c Bulkhead,
    pub company: &'c str,
}

/// Of the randomness of every call that is made once more.
const REPEATED_SEED: u64 = 1;

/// Hears what each call took.
pub type Watch = Arc<dyn Fn(Usage) + Send + Sync>;

impl Callable {
    /// By itself, whatever else serves under its name.
    pub(super) fn alone(plugin: Arc<Plugin>, calls: Arc<Calls>) -> Callable {
        let bulkhead = Arc::new(Bulkhead::new(&calls.limits));
        Callable::within(bulkhead, plugin, calls)
    }

    pub(super) fn within(
        bulkhead: Arc<Bulkhead>,
        plugin: Arc<Plugin>,
        calls: Arc<Calls>,
    ) -> Callable {
        Callable { plugin, bulkhead, calls, company: Arc::default(), watch: None, known: None }
    }

    /// The same, called for a company.
    pub(super) fn of_company(self, company: &str) -> Callable {
        Callable { company: company.into(), ..self }
    }

    #[must_use]
    pub fn manifest(&self) -> &Manifest {
        &self.plugin.manifest
    }

    /// The SHA-256 of the component, in hexadecimal.
    #[must_use]
    pub fn digest(&self) -> &str {
        &self.plugin.digest
    }

    /// `name@version`, with the first digits of the digest.
    #[must_use]
    pub fn label(&self) -> &str {
        &self.plugin.label
    }

    /// The same plugin, whose calls `watch` hears of.
    #[must_use]
    pub fn watched(self, watch: Watch) -> Callable {
        Callable { watch: Some(watch), ..self }
    }

    #[must_use]
    pub fn offers(&self, interface: &str) -> bool {
        self.plugin.guest.interfaces().contains(&interface)
    }

    /// The same component in a world of its own, in which a call can be made once more: time stands still, cache and vault say
    /// what was heard, the script is the upstream, and `recorder` hears of it. Nothing leaves, and nothing counts.
    #[must_use]
    pub fn once_more(
        &self,
        began: Timestamp,
        known: Heard,
        script: impl Fn(&Outgoing) -> Result<Answer, EgressError> + Send + Sync + 'static,
        recorder: Recorder,
    ) -> Callable {
        let (clock, random) = (Clock::frozen_at(began), Random::seeded(REPEATED_SEED));
        let calls = Arc::new(self.calls.scripted_at(clock, random, script));
        let _ = calls.recorder.set(recorder);
        let plugin = Arc::new(self.plugin.measured_apart(&calls.metrics));
        Callable { known: Some(Arc::new(known)), ..Callable::alone(plugin, calls) }
    }

    /// A call that may not be written down.
    pub(super) async fn call<'f, T>(
        &self,
        function: &'static str,
        credentials: &Credentials,
        invoke: &Invoke<'f, T>,
    ) -> Result<T, CallError> {
        let grant = self.grant(credentials);
        self.make_call(function, grant, invoke, &mut Progress::default()).await
    }

    /// A call that is written down, where there is somebody who does so.
    pub(super) async fn call_on_record<'f, T: End>(
        &self,
        function: &'static str,
        asked: impl FnOnce() -> Call,
        credentials: &Credentials,
        invoke: &Invoke<'f, T>,
    ) -> Result<T, CallError> {
        let Some(recorder) = self.calls.recorder.get() else {
            return self.call(function, credentials, invoke).await;
        };
        let (grant, began) = (self.grant(credentials), self.calls.clock.now());
        let mut progress = Progress { heard: Some(Heard::default()), ..Progress::default() };
        let answer = self.make_call(function, grant.clone(), invoke, &mut progress).await;
        let said = answer.as_ref().map_or("", End::end);
        if let Some(heard) = progress.heard.filter(|_| progress.used.runs > 0)
            && (said != UNAUTHENTIC || self.known.is_some())
        {
            recorder(Recorded {
                plugin: self.clone(),
                company: self.company.clone(),
                began,
                call: asked().without_secrets(&grant),
                settings: self.manifest().given(credentials),
                secrets: grant.secrets.names(),
                heard,
                outcome: calls::outcome(&answer).name(),
                said,
                fault: answer.as_ref().err().map(|error| error.fault.clone()),
            });
        }
        answer
    }

    fn grant(&self, credentials: &Credentials) -> Arc<Grant> {
        let mut grant = self.manifest().grant(credentials);
        grant.scope = format!("{}/{}", self.plugin.digest, grant.scope);
        grant.known.clone_from(&self.known);
        Arc::new(grant)
    }

    async fn make_call<'f, T>(
        &self,
        function: &'static str,
        grant: Arc<Grant>,
        invoke: &Invoke<'f, T>,
        progress: &mut Progress,
    ) -> Result<T, CallError> {
        let called =
            Called { plugin: &self.plugin, bulkhead: &self.bulkhead, company: &self.company };
        let answer = self.calls.call(called, function, grant, invoke, progress).await;
        if let Some(watch) = &self.watch {
            watch(progress.used);
        }
        answer
    }
}

impl Manifest {
    /// The settings that these credentials have: not the defaults, which are another version's own affair.
    fn given(&self, credentials: &Credentials) -> HashMap<String, String> {
        let values = credentials.values.iter();
        let settings = values.filter(|(name, _)| self.settings.contains_key(*name));
        settings.map(|(name, value)| (name.clone(), value.clone())).collect()
    }

    /// What these credentials let the plugin use: its named secrets, its settings or their defaults, the hosts that it names
    /// and those of its URL settings.
    pub(super) fn grant(&self, credentials: &Credentials) -> Grant {
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
        let bound = self.secrets.bound(origin_of).collect();
        Grant {
            scope: credentials.id.clone(),
            origins: self
                .hosts
                .iter()
                .map(|name| host(name))
                .chain(urls.filter_map(|(name, _)| address(name)))
                .collect(),
            secrets: Secrets::new(secrets.collect()).bound(bound),
            settings,
            known: None,
        }
    }

    /// Names every credential that is missing, every unknown one, and every URL that calls could not use.
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

        let missing = named(&missing).map(|(which, many)| {
            format!("{which} {}", if many { "are required" } else { "is required" })
        });
        let unknown = named(&unknown).map(|(which, many)| {
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

/// Credentials as a sentence names them, and whether they are several; `None`: there are none.
fn named(names: &[&String]) -> Option<(String, bool)> {
    let names: Vec<String> = names.iter().map(|name| format!("credentials.{name}")).collect();
    match &names[..] {
        [] => None,
        [one] => Some((format!("the {one} field"), false)),
        [first @ .., last] => Some((format!("the {} and {last} fields", first.join(", ")), true)),
    }
}
