//! Version 1 of the plugin contract (`wit/v1`). Its types are converted here to the host's own.
//!
//! The world `everything` exists in the host only; loading a component finds its interfaces.

pub mod baseline;
mod convert;
mod registers;

use wasmtime::{
    Engine, Store,
    component::{Component, HasSelf, Instance, InstancePre, Linker},
};
use wasmtime_wasi::WasiView;

use super::drift;
use crate::{
    CardOrder, CheckoutOrder, CheckoutSession, DebitOrder, Fault, FaultCategory, Notification,
    NotificationRefusal, PluginKind, ProviderPayment, ProviderRefund, RefundOrder, TextMessage,
    runtime::{
        engine::State,
        session::{HttpRequest, HttpResponse},
    },
};

mod bindings {
    wasmtime::component::bindgen!({
        path: "../../wit/v1",
        inline: "package tollhouse:host; world everything { include tollhouse:plugin/provider@1.0.0; include tollhouse:plugin/sms-gateway@1.0.0; include tollhouse:plugin/country@1.0.0; }",
        imports: { default: trappable },
        exports: { default: async },
    });
}
use bindings::{exports::tollhouse::plugin as exported, tollhouse::plugin as imported};
use imported::types as wit;

const CONTRACT_PACKAGE: &str = "tollhouse:plugin/";
const CONTRACT_MAJOR: u64 = 1;

/// Returns the noun for a kind of plugin, and the interfaces that it must export.
fn required_interfaces(kind: PluginKind) -> (&'static str, &'static [&'static str]) {
    match kind {
        PluginKind::Provider => ("a provider", &["checkout", "verification", "notifications"]),
        PluginKind::Sms => ("an SMS gateway", &["sms"]),
        PluginKind::Country => ("a country", &["identity-lookup"]),
    }
}

macro_rules! interfaces {
    ($($field:ident = $name:literal),* $(,)?) => {
        /// Interfaces exported by a component, looked up once when it is loaded.
        #[derive(Clone)]
        struct Offers { $($field: Option<exported::$field::GuestIndices>),* }

        impl Offers {
            fn of<T: 'static>(pre: &InstancePre<T>) -> wasmtime::Result<Offers> {
                let export = |name| pre.component().get_export_index(None, name);
                Ok(Offers { $($field: match export(concat!("tollhouse:plugin/", $name, "@1.0.0")) {
                    None => None,
                    Some(_) => Some(exported::$field::GuestIndices::new(pre)?),
                }),* })
            }

            /// Loads each interface, which checks its types.
            fn check(&self, store: &mut Store<State>, instance: &Instance) -> Result<(), String> {
                $(if let Some(indices) = &self.$field {
                    indices.load(&mut *store, instance).map_err(|error| {
                        format!("the interface {} differs from the contract: {error}", $name)
                    })?;
                })*
                Ok(())
            }

            fn names(&self) -> Vec<&'static str> {
                let mut names = Vec::new();
                $(if self.$field.is_some() { names.push($name) })*
                names
            }
        }
    };
}
interfaces! {
    checkout = "checkout", verification = "verification", saved_card = "saved-card",
    direct_debit = "direct-debit", refunds = "refunds", notifications = "notifications", sms = "sms",
    identity_lookup = "identity-lookup", identity_face = "identity-face", identity_document = "identity-document",
}

/// A linked component, ready to be instantiated.
#[derive(Clone)]
pub struct Guest {
    pub pre: InstancePre<State>,
    offers: Offers,
}

/// The result of a guest function. The outer error is a trap.
pub type GuestResult<T> = wasmtime::Result<Result<T, Fault>>;

impl Guest {
    /// Rejects, with a reason for the operator, a component that lacks an interface of its kind.
    pub fn load(pre: InstancePre<State>, kind: PluginKind) -> Result<Guest, String> {
        let offers = Offers::of(&pre).map_err(|error| {
            let fallback = format!("an interface differs from the contract: {error:#}");
            explain_mismatch(pre.component(), fallback)
        })?;
        let names = offers.names();
        let (what, interfaces) = required_interfaces(kind);
        match interfaces.iter().find(|interface| !names.contains(interface)) {
            Some(missing) => Err(format!("{what} must export the interface {missing}")),
            None => Ok(Guest { pre, offers }),
        }
    }

    pub fn check(&self, store: &mut Store<State>, instance: &Instance) -> Result<(), String> {
        self.offers
            .check(store, instance)
            .map_err(|vague| explain_mismatch(self.pre.component(), vague))
    }

    pub fn interfaces(&self) -> Vec<&'static str> {
        self.offers.names()
    }

    pub async fn start_checkout(
        &self,
        store: &mut Store<State>,
        instance: &Instance,
        order: &CheckoutOrder,
    ) -> GuestResult<CheckoutSession> {
        let Some(checkout) = &self.offers.checkout else { return not_supported("checkout") };
        let answer = checkout.load(&mut *store, instance)?.call_start(store, &order.into()).await?;
        Ok(answer.map_err(Into::into).and_then(CheckoutSession::try_from))
    }

    pub async fn verify(
        &self,
        store: &mut Store<State>,
        instance: &Instance,
        service_ref: &str,
    ) -> GuestResult<ProviderPayment> {
        let Some(verification) = &self.offers.verification else {
            return not_supported("verification");
        };
        let guest = verification.load(&mut *store, instance)?;
        payment(guest.call_verify(store, service_ref).await?)
    }

    pub async fn charge_card(
        &self,
        store: &mut Store<State>,
        instance: &Instance,
        order: &CardOrder,
    ) -> GuestResult<ProviderPayment> {
        let Some(saved_card) = &self.offers.saved_card else { return not_supported("saved-card") };
        let guest = saved_card.load(&mut *store, instance)?;
        payment(guest.call_charge(store, &order.into()).await?)
    }

    pub async fn deauthorize(
        &self,
        store: &mut Store<State>,
        instance: &Instance,
        token: &str,
    ) -> GuestResult<bool> {
        let Some(saved_card) = &self.offers.saved_card else { return Ok(Ok(false)) };
        let guest = saved_card.load(&mut *store, instance)?;
        Ok(guest.call_deauthorize(store, token).await?.map_err(Into::into))
    }

    pub async fn debit(
        &self,
        store: &mut Store<State>,
        instance: &Instance,
        order: &DebitOrder,
    ) -> GuestResult<ProviderPayment> {
        let Some(direct_debit) = &self.offers.direct_debit else {
            return not_supported("direct-debit");
        };
        let guest = direct_debit.load(&mut *store, instance)?;
        payment(guest.call_debit(store, &order.into()).await?)
    }

    pub async fn start_refund(
        &self,
        store: &mut Store<State>,
        instance: &Instance,
        order: &RefundOrder,
    ) -> GuestResult<ProviderRefund> {
        let Some(refunds) = &self.offers.refunds else { return not_supported("refunds") };
        let answer = refunds.load(&mut *store, instance)?.call_start(store, &order.into()).await?;
        Ok(answer.map(Into::into).map_err(Into::into))
    }

    pub async fn check_refund(
        &self,
        store: &mut Store<State>,
        instance: &Instance,
        provider_id: &str,
    ) -> GuestResult<ProviderRefund> {
        let Some(refunds) = &self.offers.refunds else { return not_supported("refunds") };
        let answer = refunds.load(&mut *store, instance)?.call_check(store, provider_id).await?;
        Ok(answer.map(Into::into).map_err(Into::into))
    }

    pub async fn parse_notification(
        &self,
        store: &mut Store<State>,
        instance: &Instance,
        headers: &[(String, String)],
        body: &[u8],
    ) -> GuestResult<Result<Vec<Notification>, NotificationRefusal>> {
        let Some(notifications) = &self.offers.notifications else {
            return not_supported("notifications");
        };
        let guest = notifications.load(&mut *store, instance)?;
        let answer = guest.call_parse(store, headers, body).await?;
        Ok(Ok(answer.map_err(Into::into).and_then(convert::notifications)))
    }

    pub async fn send_text(
        &self,
        store: &mut Store<State>,
        instance: &Instance,
        message: &TextMessage,
    ) -> GuestResult<String> {
        let Some(sms) = &self.offers.sms else { return not_supported("sms") };
        let answer = sms.load(&mut *store, instance)?.call_send(store, &message.into()).await?;
        Ok(answer.map(convert::truncate_text).map_err(Into::into))
    }
}

fn payment(
    answer: Result<imported::payments::Payment, wit::Fault>,
) -> GuestResult<ProviderPayment> {
    Ok(answer.map_err(Into::into).and_then(ProviderPayment::try_from))
}

fn not_supported<T>(interface: &str) -> GuestResult<T> {
    let message = format!("the plugin has no interface {interface}");
    Ok(Err(Fault::new(FaultCategory::Invalid, "not-supported", message)))
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

/// Describes a type mismatch in terms of the contract, else with the engine's message.
fn explain_mismatch(component: &Component, fallback: String) -> String {
    check_types(component).err().unwrap_or(fallback)
}

/// The host functions that components import.
pub trait Imports:
    WasiView
    + imported::http::Host
    + imported::vault::Host
    + imported::settings::Host
    + imported::cache::Host
    + imported::log::Host
    + 'static
{
}
impl Imports for State {}

pub fn linker<T: Imports>(engine: &Engine) -> wasmtime::Result<Linker<T>> {
    let mut linker = Linker::new(engine);
    // The libc in Python and JavaScript runtimes imports files and sockets even if unused.
    wasmtime_wasi::p2::add_to_linker_async(&mut linker)?;
    imported::http::add_to_linker::<T, HasSelf<T>>(&mut linker, |state| state)?;
    imported::vault::add_to_linker::<T, HasSelf<T>>(&mut linker, |state| state)?;
    imported::settings::add_to_linker::<T, HasSelf<T>>(&mut linker, |state| state)?;
    imported::cache::add_to_linker::<T, HasSelf<T>>(&mut linker, |state| state)?;
    imported::log::add_to_linker::<T, HasSelf<T>>(&mut linker, |state| state)?;
    Ok(linker)
}

// ---- host functions -----------------------------------------------------------------------------

impl imported::http::Host for State {
    fn send(
        &mut self,
        request: imported::http::Request,
    ) -> wasmtime::Result<Result<imported::http::Response, wit::Fault>> {
        let imported::http::Request { method, url, headers, body, timeout_ms } = request;
        let answer = self.session.send(HttpRequest { method, url, headers, body, timeout_ms })?;
        Ok(answer
            .map(|HttpResponse { status, headers, body }| imported::http::Response {
                status,
                headers,
                body,
            })
            .map_err(Into::into))
    }
}

impl imported::vault::Host for State {
    fn secret(&mut self, name: String) -> wasmtime::Result<Result<String, wit::Fault>> {
        Ok(self.session.secret(&name).map_err(Into::into))
    }

    fn basic(
        &mut self,
        user: String,
        password: String,
    ) -> wasmtime::Result<Result<String, wit::Fault>> {
        Ok(self.session.basic(&user, &password).map_err(Into::into))
    }

    fn hmac(
        &mut self,
        algorithm: String,
        secret: String,
        data: Vec<u8>,
    ) -> wasmtime::Result<Result<Vec<u8>, wit::Fault>> {
        Ok(self.session.hmac(&algorithm, &secret, &data).map_err(Into::into))
    }

    fn matches(
        &mut self,
        secret: String,
        candidate: Vec<u8>,
    ) -> wasmtime::Result<Result<bool, wit::Fault>> {
        Ok(self.session.matches(&secret, &candidate).map_err(Into::into))
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
