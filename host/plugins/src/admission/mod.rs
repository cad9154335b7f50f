//! Admission: the checks that a component passes before it can serve, in order.
//!
//! A child process with limits compiles; other checks bound their input or run under call limits.

pub mod publishers;
pub mod signature;

use std::time::Instant;

use tracing::{instrument::WithSubscriber, subscriber::NoSubscriber};

use crate::prelude::*;
use crate::{
    call::{executor::CallExecutor, reply::failure_summary},
    contract::v1,
    manifest::capabilities::Capabilities,
    runtime::compile,
};

/// Number of digest digits in log labels, enough to distinguish builds of one version.
pub const LABEL_DIGITS: usize = 8;

/// The result of one admission check. Checks after the first failed one do not run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "PluginCheck")]
pub struct AdmissionCheck {
    /// Name of the check: `signature`, `size`, `manifest`, `compile`, `contract`, `imports`,
    /// `types`, `interfaces`, `start`, `country` or `examples`.
    pub check: &'static str,
    pub passed: bool,
    /// Details of the result; the reason if the check failed.
    pub result: String,
}

/// The result of admitting a component.
pub struct Admission {
    pub checks: Vec<AdmissionCheck>,
    /// The admitted plugin, or the first reason against it, for operators.
    pub plugin: Result<Arc<Plugin>, String>,
}

/// The extent of the checks.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum AdmissionMode {
    /// All checks, for an installation.
    Full,
    /// All checks but the examples, which the author's tools run separately.
    Author,
    /// No examples: a host has run all checks on this component before.
    Readmission,
}

pub async fn admit(
    calls: &Arc<CallExecutor>,
    wasm: Arc<Vec<u8>>,
    mode: AdmissionMode,
) -> Admission {
    let mut steps = CheckSequence::default();
    let plugin = steps.run(calls, wasm, mode).await;
    Admission { checks: steps.0, plugin }
}

#[derive(Default)]
struct CheckSequence(Vec<AdmissionCheck>);

impl AdmissionCheck {
    pub fn new(check: &'static str, found: &Result<String, String>) -> AdmissionCheck {
        let result = found.as_ref().unwrap_or_else(|reason| reason).clone();
        AdmissionCheck { check, passed: found.is_ok(), result }
    }
}

impl CheckSequence {
    async fn run(
        &mut self,
        calls: &Arc<CallExecutor>,
        wasm: Arc<Vec<u8>>,
        mode: AdmissionMode,
    ) -> Result<Arc<Plugin>, String> {
        let most = calls.limits.component_bytes;
        let size = match wasm.len() {
            bytes if bytes > most => Err(format!("the component is larger than {most} bytes")),
            bytes => Ok(bytes),
        };
        self.record("size", size, |bytes| format!("{bytes} of at most {most} bytes"))?;
        let manifest = match mode {
            AdmissionMode::Readmission => Manifest::read_installed(&wasm),
            AdmissionMode::Full | AdmissionMode::Author => Manifest::read(&wasm),
        };
        let manifest = self.record("manifest", manifest, describe_manifest)?;
        let digest = signature::digest(&wasm);
        let began = Instant::now();
        let CallExecutor { engine, limits, compiling, .. } = &**calls;
        let compiled = compile::load_or_compile(engine, limits, compiling, &digest, &wasm).await;
        let component =
            self.record("compile", compiled, |_| format!("{} ms", began.elapsed().as_millis()))?;
        self.record("contract", v1::check_versions(&component), |()| "version 1".to_owned())?;
        let linked = self.record("imports", v1::link(&calls.linker, &component), |_| {
            describe_imports(&component)
        })?;
        let contract = v1::check_types(&component);
        self.record("types", contract, |()| "match the contract".to_owned())?;
        let guest = self.record("interfaces", v1::Guest::load(linked, manifest.kind), |guest| {
            guest.offers.names().join(", ")
        })?;
        let plugin = Arc::new(Plugin::new(manifest, digest, guest, &calls.metrics));
        let started = calls.instantiate_trial(&plugin).await;
        self.record("start", started, |()| "instantiated, with every function".to_owned())?;
        let country = plugin.manifest.check_country(&plugin.interfaces());
        self.record("country", country, |()| match &plugin.manifest.country {
            Some(country) => format!("{} identity types", country.identities.len()),
            None => "none".to_owned(),
        })?;
        if mode == AdmissionMode::Full {
            self.record("examples", call_examples(calls, &plugin).await, String::clone)?;
        }
        Ok(plugin)
    }

    fn record<T>(
        &mut self,
        check: &'static str,
        found: Result<T, String>,
        describe: impl FnOnce(&T) -> String,
    ) -> Result<T, String> {
        self.0
            .push(AdmissionCheck::new(check, &found.as_ref().map(describe).map_err(String::clone)));
        found
    }
}

fn describe_manifest(manifest: &Manifest) -> String {
    let requested = Capabilities::of(manifest);
    let requested = if requested.is_empty() { "nothing".to_owned() } else { requested.to_string() };
    format!("{} {}, which requests {requested}", manifest.name, manifest.version)
}

/// Lists imports. Those of WASI are only counted: language runtimes add them, without access to
/// anything.
fn describe_imports(component: &wasmtime::component::Component) -> String {
    let imports = component.component_type();
    let names = imports.imports(component.engine()).map(|(name, _)| name.to_owned());
    let (wasi, mut own): (Vec<String>, Vec<String>) =
        names.partition(|name| name.starts_with("wasi:"));
    own.push(format!("{} of WASI", wasi.len()));
    own.join(", ")
}

/// Calls each function with its example and the manifest's canned responses. A returned fault
/// passes; a trap, an exceeded limit or an unreadable result does not.
async fn call_examples(calls: &CallExecutor, plugin: &Plugin) -> Result<String, String> {
    let calls = Arc::new(calls.with_script(Arc::new(plugin.manifest.examples.script())));
    let apart = Arc::new(plugin.with_metrics(&calls.metrics));
    let callable = PluginHandle::standalone(apart, calls);
    let credentials = Credentials::example(&plugin.manifest);
    let mut results = Vec::new();
    for call in Call::examples(&callable) {
        let function = call.function();
        // Examples raise no alarms and leave no traces.
        let reply = callable.execute(&credentials, &call);
        let reply = reply.with_subscriber(NoSubscriber::new()).await;
        if let Err(CallError { fault, .. }) = &reply
            && fault.code == Fault::PLUGIN_BROKE
        {
            return Err(format!("{function} fails with its example: {}", fault.message));
        }
        let result = failure_summary(&reply).err().unwrap_or_else(|| "ok".to_owned());
        results.push(format!("{function} {result}"));
    }
    Ok(results.join(", "))
}
