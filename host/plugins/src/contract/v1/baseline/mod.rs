//! The baseline: the same runs under wasmtime alone, the least that a call can cost.
//!
//! Engine, pool, machine code and typed functions are the host's. There are no limits, journal,
//! placeholders or redaction, and responses come from memory without delay.

mod native;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use wasmtime::{
    Engine, Store,
    component::{Instance, InstancePre, ResourceTable},
};
use wasmtime_wasi::{WasiCtx, WasiCtxView, WasiView};

use self::native::HostCall;
pub use self::native::NativeWorkload;
use super::{Imports, Offers, exported, imported, linker, wit};
use crate::{
    Call, Credentials, Fault, PluginHandle,
    runtime::{session::RunEnded, vault::Secrets},
};
use tollhouse_platform::outbound::egress::{EgressRequest, Script};

/// An epoch deadline that is never reached.
const NEVER: u64 = u64::MAX / 2;
/// A placeholder of the same length as the host's.
const PLACEHOLDER: &str = "vault-00000000000000000000000000000000";

/// A component that runs under wasmtime alone.
pub struct Baseline {
    engine: Engine,
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
    /// Log of host calls; `None` if they are not logged.
    host_calls: Option<Vec<HostCall>>,
}

/// A call with arguments in the contract's types.
pub struct ContractCall(Arguments);

enum Arguments {
    StartCheckout(exported::checkout::CheckoutOrder),
    Verify(String),
    ChargeCard(exported::saved_card::CardOrder),
    Deauthorize(String),
    Debit(exported::direct_debit::DebitOrder),
    StartRefund(exported::refunds::RefundOrder),
    CheckRefund(String),
    ParseNotification(Vec<(String, String)>, Vec<u8>),
    SendText(exported::sms::TextMessage),
    LookUp(imported::identity::Question),
    Compare(imported::identity::Question, imported::identity::Image),
    Read(String, imported::identity::Image),
}

impl From<&Call> for ContractCall {
    fn from(call: &Call) -> ContractCall {
        ContractCall(match call {
            Call::StartCheckout(order) => Arguments::StartCheckout(order.into()),
            Call::Verify(service_ref) => Arguments::Verify(service_ref.clone()),
            Call::ChargeCard(order) => Arguments::ChargeCard(order.into()),
            Call::Deauthorize(token) => Arguments::Deauthorize(token.clone()),
            Call::Debit(order) => Arguments::Debit(order.into()),
            Call::StartRefund(order) => Arguments::StartRefund(order.into()),
            Call::CheckRefund(id) => Arguments::CheckRefund(id.clone()),
            Call::ParseNotification { headers, body } => {
                Arguments::ParseNotification(headers.clone(), body.clone())
            }
            Call::SendText(message) => Arguments::SendText(message.into()),
            Call::LookUp(question) => Arguments::LookUp(question.into()),
            Call::Compare(question, selfie) => Arguments::Compare(question.into(), selfie.into()),
            Call::Read(identity, document) => Arguments::Read(identity.clone(), document.into()),
        })
    }
}

impl Baseline {
    pub fn new(
        plugin: &PluginHandle,
        credentials: &Credentials,
        script: Arc<Script>,
    ) -> Result<Baseline, String> {
        let component = plugin.plugin.guest.pre.component();
        let engine = component.engine().clone();
        let text = |error: wasmtime::Error| format!("{error:#}");
        let pre = linker(&engine).and_then(|linker| linker.instantiate_pre(component));
        let pre = pre.map_err(text)?;
        let offers = Offers::of(&pre).map_err(text)?;
        let grant = plugin.manifest().grant(credentials);
        let cache = Mutex::default();
        let world =
            GuestEnvironment { secrets: grant.secrets, settings: grant.settings, cache, script };
        Ok(Baseline { engine, pre, offers, world: Arc::new(world) })
    }

    /// Makes a call with fresh instances, like the host.
    pub async fn call(
        &self,
        call: &ContractCall,
        response_mode: ResponseMode,
    ) -> wasmtime::Result<()> {
        let mut answers = Vec::new();
        loop {
            let (mut store, instance) = self.instantiate(response_mode, answers).await?;
            let known = store.data().responses.len();
            match self.run(&mut store, &instance, call).await {
                Err(error) => {
                    answers = store.into_data().responses;
                    if answers.len() == known {
                        return Err(error);
                    }
                }
                done => return done,
            }
        }
    }

    /// Returns a warm instance.
    pub async fn warm_instance(&self) -> wasmtime::Result<WarmInstance<'_>> {
        let (store, instance) = self.instantiate(ResponseMode::Inline, Vec::new()).await?;
        Ok(WarmInstance { baseline: self, store, instance })
    }

    /// Returns the part of a call's work that does not need WebAssembly.
    pub async fn native_workload(&self, call: &ContractCall) -> wasmtime::Result<NativeWorkload> {
        self.call(call, ResponseMode::Inline).await?; // fills the guest's cache
        let (mut store, instance) = self.instantiate(ResponseMode::Inline, Vec::new()).await?;
        store.data_mut().host_calls = Some(Vec::new());
        self.run(&mut store, &instance, call).await?;
        let asked = store.into_data().host_calls.unwrap_or_default();
        Ok(NativeWorkload::new(self.world.clone(), call, asked))
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
            host_calls: None,
        };
        let mut store = Store::new(&self.engine, bare);
        store.set_epoch_deadline(NEVER);
        let instance = self.pre.instantiate_async(&mut store).await?;
        Ok((store, instance))
    }

    async fn run(
        &self,
        store: &mut Store<BaselineState>,
        instance: &Instance,
        ContractCall(arguments): &ContractCall,
    ) -> wasmtime::Result<()> {
        macro_rules! call {
            ($interface:ident.$function:ident $($argument:expr),*) => {{
                let offered = self.offers.$interface.as_ref();
                let offered = offered.ok_or_else(|| wasmtime::Error::msg("not offered"))?;
                let guest = offered.load(&mut *store, instance)?;
                drop(guest.$function(store, $($argument),*).await?);
            }};
        }
        match arguments {
            Arguments::StartCheckout(order) => call!(checkout.call_start order),
            Arguments::Verify(service_ref) => call!(verification.call_verify service_ref),
            Arguments::ChargeCard(order) => call!(saved_card.call_charge order),
            Arguments::Deauthorize(token) => call!(saved_card.call_deauthorize token),
            Arguments::Debit(order) => call!(direct_debit.call_debit order),
            Arguments::StartRefund(order) => call!(refunds.call_start order),
            Arguments::CheckRefund(id) => call!(refunds.call_check id),
            Arguments::ParseNotification(headers, body) => {
                call!(notifications.call_parse headers, body);
            }
            Arguments::SendText(message) => call!(sms.call_send message),
            Arguments::LookUp(question) => call!(identity_lookup.call_lookup question),
            Arguments::Compare(question, selfie) => {
                call!(identity_face.call_compare question, selfie);
            }
            Arguments::Read(identity, document) => {
                call!(identity_document.call_read identity, document);
            }
        }
        Ok(())
    }
}

/// A warm instance: one for many calls, which the contract forbids. For measurements only.
pub struct WarmInstance<'f> {
    baseline: &'f Baseline,
    store: Store<BaselineState>,
    instance: Instance,
}

impl WarmInstance<'_> {
    pub async fn call(&mut self, call: &ContractCall) -> wasmtime::Result<()> {
        self.baseline.run(&mut self.store, &self.instance, call).await
    }
}

// ---- host functions -----------------------------------------------------------------------------

impl Imports for BaselineState {}

impl BaselineState {
    fn log_host_call(&mut self, asked: impl FnOnce() -> HostCall) {
        if let Some(noted) = &mut self.host_calls {
            noted.push(asked());
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
    fn send(
        &mut self,
        request: imported::http::Request,
    ) -> wasmtime::Result<Result<imported::http::Response, wit::Fault>> {
        if let Some(answer) = self.responses.get(self.position) {
            self.position += 1;
            return Ok(Ok(answer.clone()));
        }
        self.log_host_call(|| HostCall::request(&request));
        let answer = (self.world.script)(&egress_request(request))?;
        let (status, headers, body) = (answer.status, answer.headers, answer.body.to_vec());
        let answer = imported::http::Response { status, headers, body };
        if self.response_mode == ResponseMode::Inline {
            return Ok(Ok(answer));
        }
        self.responses.push(answer);
        Err(RunEnded::Waiting.into())
    }
}

impl imported::vault::Host for BaselineState {
    fn secret(&mut self, _name: String) -> wasmtime::Result<Result<String, wit::Fault>> {
        Ok(Ok(PLACEHOLDER.to_owned()))
    }

    fn basic(&mut self, _: String, _: String) -> wasmtime::Result<Result<String, wit::Fault>> {
        Ok(Ok(PLACEHOLDER.to_owned()))
    }

    fn hmac(
        &mut self,
        algorithm: String,
        secret: String,
        data: Vec<u8>,
    ) -> wasmtime::Result<Result<Vec<u8>, wit::Fault>> {
        let mac = self.world.secrets.hmac(&algorithm, &secret, &data);
        self.log_host_call(|| HostCall::Hmac { algorithm, secret, data });
        Ok(mac.map_err(|error| Fault::from(error).into()))
    }

    fn matches(
        &mut self,
        secret: String,
        candidate: Vec<u8>,
    ) -> wasmtime::Result<Result<bool, wit::Fault>> {
        let matches = self.world.secrets.matches(&secret, &candidate);
        self.log_host_call(|| HostCall::Match { secret, candidate });
        Ok(matches.map_err(|error| Fault::from(error).into()))
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
