//! Admission: the checks that a component passes before it can serve, in order.
//!
//! A child process with limits compiles; other checks bound their input or run under call limits.

pub mod publishers;
pub mod signature;

use std::{sync::Arc, time::Instant};

use schemars::JsonSchema;
use serde::Serialize;
use tracing::{instrument::WithSubscriber, subscriber::NoSubscriber};

use super::{Call, CallError, Callable, Credentials, Fault, Manifest, Plugin};
use crate::{
    call::{calls::Calls, reply::in_words},
    contract::v1,
    manifest::capabilities::Capabilities,
};

/// Number of digest digits in log labels, enough to distinguish builds of one version.
pub const LABEL_DIGITS: usize = 8;

/// The result of one admission check. Checks after the first failed one do not run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "PluginCheck")]
pub struct Check {
    /// Name of the check: `signature`, `size`, `manifest`, `compile`, `contract`, `imports`,
    /// `types`, `interfaces`, `start`, `country` or `examples`.
    pub check: &'static str,
    pub passed: bool,
    /// Details of the result; the reason if the check failed.
    pub said: String,
}

/// The result of admitting a component.
pub struct Admission {
    pub checks: Vec<Check>,
    /// The admitted plugin, or the first reason against it, for operators.
    pub plugin: Result<Arc<Plugin>, String>,
}

/// The extent of the checks.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Care {
    /// All checks, for an installation.
    Full,
    /// All checks but the examples, which the author's tools run separately.
    Authors,
    /// No examples: a host has run all checks on this component before.
    Known,
}

pub async fn admit(calls: &Arc<Calls>, wasm: Arc<Vec<u8>>, care: Care) -> Admission {
    let mut steps = Steps::default();
    let plugin = steps.take(calls, wasm, care).await;
    Admission { checks: steps.0, plugin }
}

#[derive(Default)]
struct Steps(Vec<Check>);

impl Check {
    pub fn new(check: &'static str, found: &Result<String, String>) -> Check {
        let said = found.as_ref().unwrap_or_else(|reason| reason).clone();
        Check { check, passed: found.is_ok(), said }
    }
}

impl Steps {
    async fn take(
        &mut self,
        calls: &Arc<Calls>,
        wasm: Arc<Vec<u8>>,
        care: Care,
    ) -> Result<Arc<Plugin>, String> {
        let most = calls.limits.component_bytes;
        self.note("size", size(wasm.len(), most), |()| {
            format!("{} of at most {most} bytes", wasm.len())
        })?;
        let manifest = match care {
            Care::Known => Manifest::read_known(&wasm),
            Care::Full | Care::Authors => Manifest::read(&wasm),
        };
        let manifest = self.note("manifest", manifest, described)?;
        let digest = signature::digest(&wasm);
        let began = Instant::now();
        let compiled = calls.compile(&digest, &wasm).await;
        let component =
            self.note("compile", compiled, |_| format!("{} ms", began.elapsed().as_millis()))?;
        self.note("contract", v1::check_versions(&component), |()| "version 1".to_owned())?;
        let linked =
            self.note("imports", v1::link(&calls.linker, &component), |_| imports(&component))?;
        let contract = v1::check_types(&component);
        self.note("types", contract, |()| "match the contract".to_owned())?;
        let guest = self.note("interfaces", v1::Guest::load(linked, manifest.kind), |guest| {
            guest.interfaces().join(", ")
        })?;
        let plugin = Arc::new(Plugin::new(manifest, digest, guest, &calls.metrics));
        let started = calls.try_out(&plugin).await;
        self.note("start", started, |()| "instantiated, with every function".to_owned())?;
        let country = plugin.manifest.check_country(&plugin.guest.interfaces());
        self.note("country", country, |()| types(&plugin.manifest))?;
        if care == Care::Full {
            self.note("examples", try_examples(calls, &plugin).await, String::clone)?;
        }
        Ok(plugin)
    }

    fn note<T>(
        &mut self,
        check: &'static str,
        found: Result<T, String>,
        said: impl FnOnce(&T) -> String,
    ) -> Result<T, String> {
        self.0.push(Check::new(check, &found.as_ref().map(said).map_err(String::clone)));
        found
    }
}

fn size(bytes: usize, most: usize) -> Result<(), String> {
    if bytes > most { Err(format!("the component is larger than {most} bytes")) } else { Ok(()) }
}

fn described(manifest: &Manifest) -> String {
    let asks = Capabilities::of(manifest);
    let asks = if asks.is_empty() { "nothing".to_owned() } else { asks.to_string() };
    format!("{} {}, which requests {asks}", manifest.name, manifest.version)
}

fn types(manifest: &Manifest) -> String {
    match &manifest.country {
        Some(country) => format!("{} identity types", country.identities.len()),
        None => "none".to_owned(),
    }
}

/// Lists imports. Those of WASI are only counted: language runtimes add them, without access to
/// anything.
fn imports(component: &wasmtime::component::Component) -> String {
    let imports = component.component_type();
    let names = imports.imports(component.engine()).map(|(name, _)| name.to_owned());
    let (wasi, mut own): (Vec<String>, Vec<String>) =
        names.partition(|name| name.starts_with("wasi:"));
    own.push(format!("{} of WASI", wasi.len()));
    own.join(", ")
}

/// Calls each function with its example and the manifest's canned responses. A returned fault
/// passes; a trap, an exceeded limit or an unreadable result does not.
async fn try_examples(calls: &Calls, plugin: &Plugin) -> Result<String, String> {
    let calls = Arc::new(calls.scripted(plugin.manifest.examples.script()));
    let apart = Arc::new(plugin.measured_apart(&calls.metrics));
    let callable = Callable::alone(apart, calls);
    let credentials = Credentials::example(&plugin.manifest);
    let mut said = Vec::new();
    for call in Call::examples(&callable) {
        let function = call.function();
        // Examples raise no alarms and leave no traces.
        let asked = callable.ask(&credentials, &call).with_subscriber(NoSubscriber::new());
        let reply = asked.await;
        if let Err(CallError { fault, .. }) = &reply
            && fault.code == Fault::BROKE
        {
            let why = &fault.message;
            return Err(format!("{function} fails with its example: {why}"));
        }
        said.push(match in_words(&reply) {
            Ok(()) => format!("{function} ok"),
            Err(words) => format!("{function} {words}"),
        });
    }
    Ok(said.join(", "))
}
