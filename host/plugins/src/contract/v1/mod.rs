//! Version 1 of the plugin contract (`wit/v1`). Its types are converted here to the host's own.
//!
//! The world `everything` exists in the host only; loading a component finds its interfaces.

mod accounts;
pub mod baseline;
mod convert;
mod disputes;
pub mod functions;
mod mandates;
mod refunds;
mod settlements;

use wasmtime::{
    Engine, WasmBacktrace,
    component::{Component, HasSelf, InstancePre, Linker},
};
use wasmtime_wasi::WasiView;

use self::functions::Offers;
use super::drift;
use crate::{
    PluginKind, SESSIONS,
    runtime::{
        engine::State,
        session::{HttpRequest, RunEnded},
        vault::transform::Step,
    },
};
use tollhouse_platform::outbound::egress::EgressResponse;

mod bindings {
    wasmtime::component::bindgen!({
        path: "../../wit/v1",
        inline: "package tollhouse:host; world everything { include tollhouse:plugin/provider-complete@1.0.0; include tollhouse:plugin/provider-sessions@1.0.0; include tollhouse:plugin/sms-gateway@1.0.0; include tollhouse:plugin/country@1.0.0; }",
        imports: { default: trappable },
        exports: { default: async },
    });
}
use bindings::{exports::tollhouse::plugin as exported, tollhouse::plugin as imported};
use imported::types as wit;

const CONTRACT_PACKAGE: &str = "tollhouse:plugin/";
const CONTRACT_MAJOR: u64 = 1;

pub fn versioned_name(interface: &str) -> String {
    format!("{CONTRACT_PACKAGE}{interface}@{CONTRACT_MAJOR}.0.0")
}

/// Returns the noun for a kind of plugin, and the interfaces that it must export.
fn required_interfaces(
    kind: PluginKind,
    exported: &[&str],
) -> (&'static str, &'static [&'static str]) {
    match kind {
        PluginKind::Provider if exported.contains(&SESSIONS) => ("a provider", &[]),
        PluginKind::Provider => ("a provider", &["checkout", "verification", "notifications"]),
        PluginKind::Sms => ("an SMS gateway", &["sms"]),
        PluginKind::Country => ("a country", &["identity-lookup"]),
    }
}

/// A linked component, ready to be instantiated.
#[derive(Clone)]
pub struct Guest {
    pub pre: InstancePre<State>,
    pub offers: Offers,
}

impl Guest {
    /// Rejects, with a reason for the operator, a component that lacks an interface of its kind.
    pub fn load(pre: InstancePre<State>, kind: PluginKind) -> Result<Guest, String> {
        let offers = Offers::of(&pre)
            .map_err(|error| format!("an interface differs from the contract: {error:#}"))?;
        let names = offers.names();
        let (what, interfaces) = required_interfaces(kind, &names);
        match interfaces.iter().find(|interface| !names.contains(interface)) {
            Some(missing) => Err(format!("{what} must export the interface {missing}")),
            None => Ok(Guest { pre, offers }),
        }
    }
}

/// Rejects a component for another major version, which would seem to lack all interfaces.
pub fn check_versions(component: &Component) -> Result<(), String> {
    let exports = component.component_type();
    for (name, _) in exports.exports(component.engine()) {
        let Some((_, version)) =
            name.strip_prefix(CONTRACT_PACKAGE).and_then(|name| name.split_once('@'))
        else {
            continue;
        };
        match semver::Version::parse(version) {
            Ok(version) if version.major == CONTRACT_MAJOR => {}
            _ => {
                return Err(format!(
                    "the component was built for version {version} of the contract; this host supports version {CONTRACT_MAJOR}"
                ));
            }
        }
    }
    Ok(())
}

/// Rejects imports outside of the contract.
pub fn link(linker: &Linker<State>, component: &Component) -> Result<InstancePre<State>, String> {
    linker.instantiate_pre(component).map_err(|error| {
        let drifts = drift::import_differences(component);
        match drifts.is_empty() {
            true => format!(
                "the component has an import that plugins may not use (available are the contract and WASI 0.2 without wasi:http; requests go through tollhouse:plugin/http): {error:#}"
            ),
            false => format!("an import differs from the contract: {}", drifts.join("; ")),
        }
    })
}

/// Rejects exports whose types differ from the contract.
pub fn check_types(component: &Component) -> Result<(), String> {
    match &drift::all_differences(component)[..] {
        [] => Ok(()),
        drifts => Err(format!("an interface differs from the contract: {}", drifts.join("; "))),
    }
}

/// Returns a linker with the host functions that components import.
pub fn linker<T>(engine: &Engine) -> wasmtime::Result<Linker<T>>
where
    T: WasiView
        + imported::http::Host
        + imported::vault::Host
        + imported::vault_transform::Host
        + imported::settings::Host
        + imported::cache::Host
        + imported::log::Host
        + 'static,
{
    let mut linker = Linker::new(engine);
    // The libc in Python and JavaScript runtimes imports files and sockets even if unused.
    wasmtime_wasi::p2::add_to_linker_async(&mut linker)?;
    imported::http::add_to_linker::<T, HasSelf<T>>(&mut linker, |state| state)?;
    imported::vault::add_to_linker::<T, HasSelf<T>>(&mut linker, |state| state)?;
    imported::vault_transform::add_to_linker::<T, HasSelf<T>>(&mut linker, |state| state)?;
    imported::settings::add_to_linker::<T, HasSelf<T>>(&mut linker, |state| state)?;
    imported::cache::add_to_linker::<T, HasSelf<T>>(&mut linker, |state| state)?;
    imported::log::add_to_linker::<T, HasSelf<T>>(&mut linker, |state| state)?;
    Ok(linker)
}

// ---- host functions -----------------------------------------------------------------------------

/// Returns the error that ends a run, with a backtrace that the engine need not capture.
fn end_run(ended: RunEnded, backtrace: Option<WasmBacktrace>) -> wasmtime::Error {
    let error = wasmtime::Error::new(ended);
    match backtrace {
        Some(backtrace) => error.context(backtrace),
        None => error,
    }
}

/// The result of a host function. The outer error ends the run.
type HostResult<T> = wasmtime::Result<Result<T, wit::Fault>>;

impl imported::http::Host for State {
    fn send(&mut self, request: imported::http::Request) -> HostResult<imported::http::Response> {
        let imported::http::Request { method, url, headers, body, timeout_ms } = request;
        let response = self.session.send(HttpRequest { method, url, headers, body, timeout_ms });
        let backtrace = &mut self.request_backtrace;
        let response = response.map_err(|ended| end_run(ended, backtrace.take()))?;
        Ok(response
            .map(|EgressResponse { status, headers, body }| imported::http::Response {
                status,
                headers,
                body: body.into(),
            })
            .map_err(Into::into))
    }
}

impl imported::vault::Host for State {
    fn secret(&mut self, name: String) -> HostResult<String> {
        Ok(self.session.secret(&name).map_err(Into::into))
    }

    fn basic(&mut self, user: String, password: String) -> HostResult<String> {
        Ok(self.session.basic(&user, &password).map_err(Into::into))
    }

    fn hmac(&mut self, algorithm: String, secret: String, data: Vec<u8>) -> HostResult<Vec<u8>> {
        Ok(self.session.hmac(&algorithm, &secret, &data).map_err(Into::into))
    }

    fn matches(&mut self, secret: String, candidate: Vec<u8>) -> HostResult<bool> {
        Ok(self.session.matches(&secret, &candidate).map_err(Into::into))
    }
}

impl imported::vault_transform::Host for State {
    fn transform(
        &mut self,
        template: Vec<u8>,
        steps: Vec<imported::vault_transform::Step>,
    ) -> HostResult<String> {
        let steps: Vec<Step> = steps.into_iter().map(Into::into).collect();
        Ok(self.session.transform(&template, &steps).map_err(Into::into))
    }
}

impl From<imported::vault_transform::Step> for Step {
    fn from(step: imported::vault_transform::Step) -> Step {
        Step { name: step.name, key: step.key }
    }
}

impl imported::settings::Host for State {
    fn get(&mut self, name: String) -> wasmtime::Result<Option<String>> {
        let value = self.session.grant.settings.get(&name).cloned();
        if value.is_none() {
            self.session.log_missing_setting(&name);
        }
        Ok(value)
    }
}

impl imported::cache::Host for State {
    fn get(&mut self, key: String) -> wasmtime::Result<Option<String>> {
        Ok(self.session.cache_get(key)?)
    }

    fn put(&mut self, key: String, value: String, ttl_seconds: u32) -> wasmtime::Result<()> {
        self.session.cache_put(key, value, ttl_seconds);
        Ok(())
    }
}

impl imported::log::Host for State {
    fn write(&mut self, level: imported::log::Level, message: String) -> wasmtime::Result<()> {
        let level = match level {
            imported::log::Level::Debug => tracing::Level::DEBUG,
            imported::log::Level::Info => tracing::Level::INFO,
            imported::log::Level::Warn => tracing::Level::WARN,
            imported::log::Level::Error => tracing::Level::ERROR,
        };
        self.session.log(level, &message);
        Ok(())
    }
}
