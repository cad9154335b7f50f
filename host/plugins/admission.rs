//! What a component has to stand before it serves anyone, step by step.
//!
//! Compiling is done by a child process with bounds of its own; whatever else looks at a component looks at so many bytes at most,
//! or runs under the limits of a call.

use std::{sync::Arc, time::Instant};

use schemars::JsonSchema;
use serde::Serialize;
use tracing::{instrument::WithSubscriber, subscriber::NoSubscriber};

use super::{
    Call, CallError, Callable, Credentials, Fault, Manifest, Plugin, calls::Calls,
    capabilities::Capabilities, reply::in_words, signature, v1,
};

/// Of a digest, enough to tell builds of one version apart in logs.
pub const LABEL_DIGITS: usize = 8;

/// One step, and what was found. Steps after one that failed are not taken.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "PluginCheck")]
pub struct Check {
    /// `signature`, `size`, `manifest`, `compile`, `contract`, `imports`, `types`, `interfaces`, `start`, `country`, `examples`.
    pub check: &'static str,
    pub passed: bool,
    pub said: String,
}

/// What became of a component.
pub struct Admission {
    pub checks: Vec<Check>,
    /// The first reason against it, for operators.
    pub plugin: Result<Arc<Plugin>, String>,
}

/// How much is asked.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Care {
    /// All of it: somebody installs the component.
    Full,
    /// Its author looks at it, and tries its examples otherwise.
    Authors,
    /// Another host, or this one in another life, has asked all.
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
        self.note("types", contract, |()| "those of the contract".to_owned())?;
        let guest = self.note("interfaces", v1::Guest::load(linked, manifest.kind), |guest| {
            guest.interfaces().join(", ")
        })?;
        let plugin = Arc::new(Plugin::new(manifest, digest, guest, &calls.metrics));
        let started = calls.try_out(&plugin).await;
        self.note("start", started, |()| "an instance, with every function".to_owned())?;
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
    format!("{} {}, which asks for {asks}", manifest.name, manifest.version)
}

fn types(manifest: &Manifest) -> String {
    match &manifest.country {
        Some(country) => format!("{} types of identity", country.identities.len()),
        None => "none".to_owned(),
    }
}

/// Of WASI only how many: what a language's runtime happens to link is no decision of the author's, and leads nowhere.
fn imports(component: &wasmtime::component::Component) -> String {
    let imports = component.component_type();
    let names = imports.imports(component.engine()).map(|(name, _)| name.to_owned());
    let (wasi, mut own): (Vec<String>, Vec<String>) =
        names.partition(|name| name.starts_with("wasi:"));
    own.push(format!("{} of WASI", wasi.len()));
    own.join(", ")
}

/// Makes one call of each function, with the examples of the manifest in the place of the provider. That the plugin says no there is
/// its author's affair; that it breaks, or gives what the host cannot read, is not.
async fn try_examples(calls: &Calls, plugin: &Plugin) -> Result<String, String> {
    let calls = Arc::new(calls.scripted(plugin.manifest.examples.script()));
    let apart = Arc::new(plugin.measured_apart(&calls.metrics));
    let callable = Callable::alone(apart, calls);
    let credentials = Credentials::example(&plugin.manifest);
    let mut said = Vec::new();
    for call in Call::examples(&callable) {
        let function = call.function();
        // Nobody must look at what an example did, and no trace is of it.
        let asked = callable.ask(&credentials, &call).with_subscriber(NoSubscriber::new());
        let reply = asked.await;
        if let Err(CallError { fault, .. }) = &reply
            && fault.code == Fault::BROKE
        {
            let why = &fault.message;
            return Err(format!("{function} breaks when it is called with its example: {why}"));
        }
        said.push(match in_words(&reply) {
            Ok(()) => format!("{function} ok"),
            Err(words) => format!("{function} {words}"),
        });
    }
    Ok(said.join(", "))
}
