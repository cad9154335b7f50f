//! The baseline: the same runs under wasmtime alone, the least that a call can cost.
//!
//! Engine, pool, machine code, typed functions and conversions are the host's. There are no limits,
//! journal, placeholders or redaction, and responses come from memory without delay.

mod native;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use wasmtime::{
    Store, WasmBacktrace,
    component::{Instance, InstancePre, ResourceTable},
};
use wasmtime_wasi::{WasiCtx, WasiCtxView, WasiView};

use self::native::HostCall;
pub use self::native::NativeWorkload;
use super::{HostResult, end_run, functions::Offers, imported, linker};
use crate::{
    Call, Credentials, Fault, PluginHandle,
    runtime::{engine::empty_backtrace, session::RunEnded, vault::Secrets},
};
use tollhouse_platform::outbound::egress::{EgressRequest, Script};

/// An epoch deadline that is never reached.
const NEVER: u64 = u64::MAX / 2;
/// A placeholder of the same length as the host's.
const PLACEHOLDER: &str = "vault-00000000000000000000000000000000";

/// A component that runs under wasmtime alone.
pub struct Baseline {
    pre: InstancePre<BaselineState>,
    offers: Offers,
    world: Arc<GuestEnvironment>,
}

/// The environment of the guest, shared by all runs.
struct GuestEnvironment {
    secrets: Secrets,
    settings: HashMap<String, String>,
    cache: Mutex<HashMap<String, String>>,
    script: Arc<Script>,
}

/// The treatment of a guest's requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResponseMode {
    /// Each request ends the run, and another one re-executes, as in the host.
    Reexecute,
    /// The run continues with the response.
    Inline,
}

/// The data of a baseline store.
pub struct BaselineState {
    wasi: WasiCtx,
    table: ResourceTable,
    world: Arc<GuestEnvironment>,
    response_mode: ResponseMode,
    responses: Vec<imported::http::Response>,
    position: usize,
    request_backtrace: Option<WasmBacktrace>,
    /// Log of host calls; `None` if they are not logged.
    host_calls: Option<Vec<HostCall>>,
}

impl Baseline {
    pub fn new(
        plugin: &PluginHandle,
        credentials: &Credentials,
        script: Arc<Script>,
    ) -> Result<Baseline, String> {
        let component = plugin.plugin.guest.pre.component();
        let text = |error: wasmtime::Error| format!("{error:#}");
        let pre = linker(component.engine()).and_then(|linker| linker.instantiate_pre(component));
        let pre = pre.map_err(text)?;
        let offers = Offers::of(&pre).map_err(text)?;
        let grant = plugin.manifest().grant(credentials);
        let cache = Mutex::default();
        let world =
            GuestEnvironment { secrets: grant.secrets, settings: grant.settings, cache, script };
        Ok(Baseline { pre, offers, world: Arc::new(world) })
    }

    /// Makes a call with fresh instances, like the host.
    pub async fn call(&self, call: &Call, response_mode: ResponseMode) -> wasmtime::Result<()> {
        let mut responses = Vec::new();
        loop {
            let (mut store, instance) = self.instantiate(response_mode, responses).await?;
            let known = store.data().responses.len();
            let Err(error) = self.offers.call(&mut store, &instance, call).await else {
                return Ok(());
            };
            responses = store.into_data().responses;
            if responses.len() == known {
                return Err(error);
            }
        }
    }

    /// Returns a warm instance.
    pub async fn warm_instance(&self) -> wasmtime::Result<WarmInstance<'_>> {
        let (store, instance) = self.instantiate(ResponseMode::Inline, Vec::new()).await?;
        Ok(WarmInstance { baseline: self, store, instance })
    }

    /// Returns the part of a call's work that does not need WebAssembly.
    pub async fn native_workload(&self, call: &Call) -> wasmtime::Result<NativeWorkload> {
        self.call(call, ResponseMode::Inline).await?; // fills the guest's cache
        let (mut store, instance) = self.instantiate(ResponseMode::Inline, Vec::new()).await?;
        store.data_mut().host_calls = Some(Vec::new());
        drop(self.offers.call(&mut store, &instance, call).await?);
        let host_calls = store.into_data().host_calls.unwrap_or_default();
        Ok(NativeWorkload::new(self.world.clone(), call, host_calls))
    }

    async fn instantiate(
        &self,
        response_mode: ResponseMode,
        responses: Vec<imported::http::Response>,
    ) -> wasmtime::Result<(Store<BaselineState>, Instance)> {
        let bare = BaselineState {
            wasi: WasiCtx::builder().build(),
            table: ResourceTable::new(),
            world: self.world.clone(),
            response_mode,
            responses,
            position: 0,
            request_backtrace: None,
            host_calls: None,
        };
        let mut store = Store::new(self.pre.component().engine(), bare);
        store.data_mut().request_backtrace = Some(empty_backtrace(&store));
        store.set_epoch_deadline(NEVER);
        let instance = self.pre.instantiate_async(&mut store).await?;
        Ok((store, instance))
    }
}

/// A warm instance: one for many calls, which the contract forbids. For measurements only.
pub struct WarmInstance<'f> {
    baseline: &'f Baseline,
    store: Store<BaselineState>,
    instance: Instance,
}

impl WarmInstance<'_> {
    pub async fn call(&mut self, call: &Call) -> wasmtime::Result<()> {
        self.baseline.offers.call(&mut self.store, &self.instance, call).await.map(drop)
    }
}

// ---- host functions -----------------------------------------------------------------------------

impl BaselineState {
    fn log_host_call(&mut self, host_call: impl FnOnce() -> HostCall) {
        if let Some(noted) = &mut self.host_calls {
            noted.push(host_call());
        }
    }
}

fn egress_request(request: imported::http::Request) -> EgressRequest {
    EgressRequest {
        sender: Arc::default(),
        method: request.method,
        url: request.url,
        headers: request.headers,
        body: request.body.map(Bytes::from),
        identity: None,
        timeout: Duration::MAX,
        max_response_bytes: usize::MAX,
    }
}

impl WasiView for BaselineState {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView { ctx: &mut self.wasi, table: &mut self.table }
    }
}

impl imported::http::Host for BaselineState {
    fn send(&mut self, request: imported::http::Request) -> HostResult<imported::http::Response> {
        if let Some(response) = self.responses.get(self.position) {
            self.position += 1;
            return Ok(Ok(response.clone()));
        }
        self.log_host_call(|| HostCall::request(&request));
        let response = (self.world.script)(&egress_request(request))?;
        let (status, headers, body) = (response.status, response.headers, response.body.to_vec());
        let response = imported::http::Response { status, headers, body };
        if self.response_mode == ResponseMode::Inline {
            return Ok(Ok(response));
        }
        self.responses.push(response);
        Err(end_run(RunEnded::Waiting, self.request_backtrace.take()))
    }
}

impl imported::vault::Host for BaselineState {
    fn secret(&mut self, _name: String) -> HostResult<String> {
        Ok(Ok(PLACEHOLDER.to_owned()))
    }

    fn basic(&mut self, _: String, _: String) -> HostResult<String> {
        Ok(Ok(PLACEHOLDER.to_owned()))
    }

    fn hmac(&mut self, algorithm: String, secret: String, data: Vec<u8>) -> HostResult<Vec<u8>> {
        let mac = self.world.secrets.hmac(&algorithm, &secret, &data);
        self.log_host_call(|| HostCall::Hmac { algorithm, secret, data });
        Ok(mac.map_err(|error| Fault::from(error).into()))
    }

    fn matches(&mut self, secret: String, candidate: Vec<u8>) -> HostResult<bool> {
        let matches = self.world.secrets.matches(&secret, &candidate);
        self.log_host_call(|| HostCall::Match { secret, candidate });
        Ok(matches.map_err(|error| Fault::from(error).into()))
    }
}

impl imported::vault_transform::Host for BaselineState {
    fn transform(
        &mut self,
        _: Vec<u8>,
        _: Vec<imported::vault_transform::Step>,
    ) -> HostResult<String> {
        Ok(Ok(PLACEHOLDER.to_owned()))
    }
}

impl imported::settings::Host for BaselineState {
    fn get(&mut self, name: String) -> wasmtime::Result<Option<String>> {
        Ok(self.world.settings.get(&name).cloned())
    }
}

impl imported::cache::Host for BaselineState {
    fn get(&mut self, key: String) -> wasmtime::Result<Option<String>> {
        let cache = self.world.cache.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(cache.get(&key).cloned())
    }

    fn put(&mut self, key: String, value: String, _ttl_seconds: u32) -> wasmtime::Result<()> {
        let mut cache = self.world.cache.lock().unwrap_or_else(PoisonError::into_inner);
        cache.insert(key, value);
        Ok(())
    }
}

impl imported::log::Host for BaselineState {
    fn write(&mut self, _: imported::log::Level, _: String) -> wasmtime::Result<()> {
        Ok(())
    }
}
