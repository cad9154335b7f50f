//! The HTTP interfaces: every route of both listeners stands in the table below.

pub mod answer;
mod auth;
pub mod body;
mod certificate;
mod connection;
mod describe;
mod docs;
pub mod fields;
mod gate;
mod get;
mod headers;
mod health;
mod idempotency;
mod limits;
mod listener;
pub mod lookups;
mod metrics;
mod object;
pub mod openapi;
pub mod path;
pub mod query;
mod request_id;
mod room;
mod serve;
mod shares;
mod tls;
mod urls;

use axum::{
    Extension, Router,
    extract::{DefaultBodyLimit, FromRef},
    middleware,
    routing::{self, MethodRouter},
};
use schemars::SchemaGenerator;
use tower_http::catch_panic::CatchPanicLayer;

pub use self::{
    auth::Caller,
    get::Get,
    health::Readiness,
    idempotency::Run,
    limits::Limits,
    listener::{Endpoint, ListenError, Listener},
    serve::{listen, serve},
    tls::{Tls, TlsError, TlsFiles},
};
use self::{
    docs::Document,
    gate::Gate,
    limits::Sizes,
    openapi::{Description, Webhook},
    query::Takes,
    room::Rooms,
};
use crate::{
    app::App, audit, cards, companies, error::Error, events, identity, loans, mandates, master_key,
    messages, notifications, operator_events, otp, payments, plans, plugins, providers,
    recollections, recordings, users, wallet,
};

/// The route whose bodies are components, which are larger than other bodies may be.
const COMPONENTS: [&str; 2] = ["/internal/v1/plugins", "/internal/v1/plugins/examine"];
/// The routes that take files, and how large a body with one may be: of users (decisions, 6), and images of 5 MiB in base64.
const UPLOADS: [(&str, usize); 2] =
    [("/api/v1/user/bulk/create", 16 << 20), ("/api/v1/kyc/{country}/{*path}", 8 << 20)];

/// Who may call a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// A company with an active subscription, by its API key.
    Company,
    /// The operator, by the operator token; on the internal listener only.
    Operator,
    /// Anyone: the route itself says whom it believes.
    Open,
    /// Anyone, even when the host has too much to do: how it does must be heard then, too.
    Always,
}

pub struct Route {
    pub method: &'static str,
    pub path: &'static str,
    pub access: Access,
    /// Its handler in the code: `payments::api::initialize`.
    handled_by: &'static str,
    summary: &'static str,
    /// Statuses of failures that do not follow from its access, arguments and answer.
    pub fails: &'static [u16],
    describe: Description,
    takes: Takes,
    handler: MethodRouter<Shared>,
}

/// What all requests share. `State<App>` of a handler is the host for that request: one operation.
#[derive(Clone)]
struct Shared(App);

impl FromRef<Shared> for App {
    fn from_ref(Shared(app): &Shared) -> App {
        app.for_operation()
    }
}

impl Route {
    /// What the OpenAPI document calls it: `payments.initialize`.
    #[must_use]
    pub fn id(&self) -> String {
        self.handled_by.replace(' ', "").replace("::api::", ".").replace("::", ".")
    }

    /// Whether it changes something for a caller who is known.
    #[must_use]
    pub fn takes_idempotency_key(&self) -> bool {
        let caller_is_known = matches!(self.access, Access::Company | Access::Operator);
        self.method != "get" && caller_is_known
    }
}

macro_rules! routes {
    ($($method:ident $path:literal $access:ident $($handler:ident)::+ $summary:literal [$($status:literal)*];)*) => {
        vec![$(Route {
            method: stringify!($method),
            path: $path,
            access: Access::$access,
            handled_by: stringify!($($handler)::+),
            summary: $summary,
            fails: &[$($status),*],
            describe: openapi::description(&$($handler)::+),
            takes: openapi::takes(&$($handler)::+),
            handler: routing::$method($($handler)::+),
        }),*]
    };
}

/// What companies and providers call. A line: method, path, who may call, handler, what it is for, and the statuses of failures
/// that follow from none of these.
#[must_use]
pub fn public_routes() -> Vec<Route> {
    routes! {
        get  "/health/live" Always health::live "Whether this host lives" [];
        get  "/health/ready" Always health::ready "Whether this host can work" [503];
        get  "/openapi.json" Open docs::openapi "This document" [];
        get  "/docs" Open docs::page "A viewer of this document" [];
        get  "/docs/{file}" Open docs::file "A file of the viewer" [];
        post "/api/v1/user/create" Company users::api::create "Create a user, or find the one with this e-mail address" [];
        post "/api/v1/otp/send" Company otp::api::send "Send a one-time password" [503];
        post "/api/v1/otp/verify" Company otp::api::verify "Verify a one-time password" [];
        get  "/api/v1/user/fetch/{email_or_id}" Company users::api::fetch "Fetch a user" [];
        post "/api/v1/user/bulk/create" Company users::api::bulk::create "Create many users" [];
        get  "/api/v1/user/export" Company users::api::export::export "Export users to a file" [502];
        get  "/api/v1/user/sample-csv" Company users::api::export::sample "Get a file to begin with" [];
        get  "/api/v1/user/file/{file}" Open users::api::export::fetch "Fetch a file by its link" [400 403 502];
        get  "/api/v1/user/list" Company users::api::list "List users" [];
        put  "/api/v1/user/edit/{user_id}" Company users::api::edit "Edit a user" [];
        get  "/api/v1/user/email-verification/send/{user_id}" Company users::api::send_email "Send a code to a user's e-mail address" [503];
        post "/api/v1/user/email-verification/verify/{user_id}" Company users::api::verify_email "Verify a user's e-mail address" [];
        get  "/api/v1/user/phone-verification/send/{user_id}" Company users::api::send_phone "Send a code to a user's phone" [503];
        post "/api/v1/user/phone-verification/verify/{user_id}" Company users::api::verify_phone "Verify a user's phone number" [];
        post "/api/v1/kyc/{country}/{*path}" Company identity::api::look_up "Look up an identity" [502 504];
        get  "/api/v1/kyc/uid/send-verification/{uid_id}" Company identity::api::send "Send a code to the addresses on record" [503];
        post "/api/v1/kyc/uid/verify/{uid_id}" Company identity::api::verify "Verify an identity by a code" [];
        get  "/api/v1/kyc/uid/list/{user_id}" Company identity::api::list "List a user's identities" [];
        get  "/api/v1/kyc/identity/list" Company identity::api::identities "List the types of identity" [];
        post "/api/v1/card/create" Company cards::api::create "Begin to save a card" [404 502 504];
        post "/api/v1/card/verify/{card}" Company cards::api::verify "Ask the provider how the verification of a card stands" [502 504];
        get  "/api/v1/card/list/{user_id}" Company cards::api::list "List a user's cards" [];
        get  "/api/v1/card/fetch/{card}" Company cards::api::fetch "Fetch a card" [];
        put  "/api/v1/card/default/set/{card}" Company cards::api::set_default "Make a card the one that is charged when none is named" [];
        delete "/api/v1/card/delete/{card}" Company cards::api::delete "Delete a card" [];
        post "/api/v1/recollection/create" Company recollections::api::create "Record a repayment, or charge one" [404 502 504];
        post "/api/v1/recollection/verify/{reference}" Company recollections::api::verify "Ask the provider how a repayment stands" [502 504];
        get  "/api/v1/recollection/fetch/{recollection}" Company recollections::api::fetch "Fetch a repayment" [];
        get  "/api/v1/recollection/fetch/reference/{reference}" Company recollections::api::fetch_by_reference "Fetch a repayment by its reference, with its loan" [];
        get  "/api/v1/recollection/list" Company recollections::api::list "List repayments" [];
        post "/api/v1/payment/initialize" Company payments::api::initialize "Begin a payment, or find the one with this reference" [404 502 504];
        post "/api/v1/payment/verify/{reference}" Company payments::api::verify "Ask the provider how a payment stands" [502 504];
        get  "/api/v1/payment/fetch/{id}" Company payments::api::fetch "Fetch a payment" [];
        get  "/api/v1/payment/fetch/reference/{reference}" Company payments::api::fetch_by_reference "Fetch a payment by its reference" [];
        get  "/api/v1/payment/list" Company payments::api::list "List payments" [];
        post "/api/v1/notifications/{provider}/{account}" Open notifications::api::receive "Take what a provider tells of its account" [400 401 503];
    }
}

/// What operators and neighbouring systems call.
#[must_use]
pub fn internal_routes() -> Vec<Route> {
    let mut routes = routes! {
        get    "/health/live" Always health::live "Whether this host lives" [];
        get    "/health/ready" Always health::ready "Whether this host can work" [503];
        get    "/metrics" Always metrics::scrape "What Prometheus collects" [];
        get    "/openapi.json" Open docs::openapi "This document" [];
        get    "/docs" Open docs::page "A viewer of this document" [];
        get    "/docs/{file}" Open docs::file "A file of the viewer" [];
        post   "/internal/v1/companies" Operator companies::api::create "Create a company with its first key" [];
        get    "/internal/v1/companies" Operator companies::api::list "List companies" [];
        get    "/internal/v1/companies/{company}" Operator companies::api::fetch "Fetch a company" [];
        patch  "/internal/v1/companies/{company}" Operator companies::api::edit "Edit or suspend a company" [];
        post   "/internal/v1/companies/{company}/event-secret/rotate" Operator companies::api::rotate_event_secret "Give a company a new secret for its events" [];
        post   "/internal/v1/companies/{company}/keys" Operator companies::api::create_key "Give a company another API key" [];
        get    "/internal/v1/companies/{company}/keys" Operator companies::api::list_keys "List a company's API keys" [];
        post   "/internal/v1/companies/{company}/keys/{key}/rotate" Operator companies::api::rotate_key "Give a company an API key in the place of another" [];
        delete "/internal/v1/companies/{company}/keys/{key}" Operator companies::api::revoke_key "Revoke an API key" [];
        put    "/internal/v1/companies/{company}/subscription" Operator companies::api::subscribe "Change a company's subscription" [];
        put    "/internal/v1/companies/{company}/providers/{provider}" Operator providers::api::set_for_company "Set up a company's own account at a provider" [];
        post   "/internal/v1/companies/{company}/providers/{provider}/test" Operator providers::api::test_for_company "Test a company's own account at a provider by a harmless call" [];
        get    "/internal/v1/companies/{company}/providers" Operator providers::api::list_for_company "List a company's own accounts at providers" [];
        put    "/internal/v1/providers/{provider}" Operator providers::api::set_for_service "Set up the service's account at a provider" [];
        post   "/internal/v1/providers/{provider}/test" Operator providers::api::test_for_service "Test the service's account at a provider by a harmless call" [];
        get    "/internal/v1/providers" Operator providers::api::list_for_service "List the service's accounts at providers" [];
        get    "/internal/v1/companies/{company}/prices" Operator plans::api::fetch_for_company "Show what a company is charged" [];
        patch  "/internal/v1/companies/{company}/prices" Operator plans::api::set_for_company "Set prices of a company's own plan" [];
        get    "/internal/v1/prices" Operator plans::api::fetch_default "Show what the default plan charges" [];
        patch  "/internal/v1/prices" Operator plans::api::set_default "Set prices of the default plan" [];
        get    "/internal/v1/companies/{company}/wallet" Operator wallet::api::fetch "Fetch a company's wallet" [];
        post   "/internal/v1/companies/{company}/wallet/credit" Operator wallet::api::credit "Put money into a wallet" [409];
        post   "/internal/v1/companies/{company}/wallet/debit" Operator wallet::api::debit "Take money out of a wallet" [409];
        get    "/internal/v1/companies/{company}/wallet/entries" Operator wallet::api::entries "List the entries of a company's book" [];
        get    "/internal/v1/events" Operator operator_events::api::read "Read what operators are told" [];
        get    "/internal/v1/companies/{company}/events" Operator events::api::list "List a company's events and their deliveries" [];
        get    "/internal/v1/companies/{company}/events/{event}/attempts" Operator events::api::attempts "List the attempts to deliver an event" [];
        post   "/internal/v1/companies/{company}/events/{event}/redeliver" Operator events::api::redeliver "Deliver an event again" [];
        get    "/internal/v1/companies/{company}/messages" Operator messages::api::list "List a company's e-mails and text messages" [];
        get    "/internal/v1/companies/{company}/payments" Operator payments::api::list_of_company "List a company's payments" [];
        get    "/internal/v1/companies/{company}/payments/{payment}" Operator payments::api::fetch_of_company "Fetch a company's payment" [];
        get    "/internal/v1/companies/{company}/payments/reference/{reference}" Operator payments::api::fetch_of_company_by_reference "Fetch a company's payment by its reference" [];
        post   "/internal/v1/companies/{company}/payments/{payment}/verify" Operator payments::api::verify_of_company "Ask the provider how a company's payment stands" [502 504];
        post   "/internal/v1/companies/{company}/payments/{payment}/refund" Operator payments::api::refund "Refund a payment" [409 502 504];
        get    "/internal/v1/companies/{company}/payments/{payment}/refund" Operator payments::api::fetch_refund "Fetch the refund of a payment" [];
        put    "/internal/v1/companies/{company}/loans/{loan}" Operator loans::api::put "Save a loan that was made elsewhere" [];
        get    "/internal/v1/companies/{company}/loans/{loan}" Operator loans::api::fetch "Fetch a loan" [];
        put    "/internal/v1/companies/{company}/direct-debits/{direct_debit}" Operator mandates::api::put "Save a direct debit that was made elsewhere" [];
        get    "/internal/v1/companies/{company}/direct-debits/{direct_debit}" Operator mandates::api::fetch "Fetch a direct debit" [];
        get    "/internal/v1/transactions" Operator loans::api::transactions "Read what was repaid" [];
        get    "/internal/v1/credit-events" Operator loans::api::credit_events "Read what repayments say of those who made them" [];
        get    "/internal/v1/card-refunds" Operator cards::api::refunds "List verification charges on their way back" [];
        post   "/internal/v1/companies/{company}/card-refunds/{refund}/retry" Operator cards::api::retry_refund "Try again to give a verification charge back" [];
        get    "/internal/v1/companies/{company}/audit" Operator audit::api::of_company "List what operators did to a company" [];
        get    "/internal/v1/identities" Operator identity::api::operators::list "List the types of identity" [];
        put    "/internal/v1/identities/{country}/{identity}" Operator identity::api::operators::switch "Switch a type of identity on or off" [];
        get    "/internal/v1/companies/{company}/identities" Operator identity::api::operators::list_for_company "List the types of identity as a company may use them" [];
        put    "/internal/v1/companies/{company}/identities/{country}/{identity}" Operator identity::api::operators::switch_for_company "Switch a type of identity on or off for a company" [];
        get    "/internal/v1/audit" Operator audit::api::of_service "List what operators did to the service" [];
        get    "/internal/v1/master-key" Operator master_key::api::fetch "Show what is sealed under which master key" [];
        post   "/internal/v1/master-key/rotate" Operator master_key::api::rotate "Seal anew what is under former master keys" [];
        post   "/internal/v1/clock/advance" Operator health::advance_clock "Move the clock, in development" [403];
    };
    routes.extend(plugin_routes());
    routes
}

fn plugin_routes() -> Vec<Route> {
    routes! {
        get    "/internal/v1/plugins" Operator plugins::api::list "List plugins" [];
        post   "/internal/v1/plugins" Operator plugins::api::install "Install a plugin: it serves when this answers" [409];
        post   "/internal/v1/plugins/examine" Operator plugins::api::examine "See what a plugin asks for, and whether it would be taken" [];
        get    "/internal/v1/plugins/{plugin}" Operator plugins::api::fetch "List the versions of a plugin" [];
        post   "/internal/v1/plugins/{plugin}/activate" Operator plugins::api::activate "Make a version of a plugin serve everyone" [409];
        post   "/internal/v1/plugins/{plugin}/canary" Operator plugins::api::canary "Try a version of a plugin on some" [409];
        post   "/internal/v1/plugins/{plugin}/rollback" Operator plugins::api::roll_back "Go back to the version of a plugin that served before" [409];
        post   "/internal/v1/plugins/{plugin}/deactivate" Operator plugins::api::deactivate "Take a plugin out of service" [409];
        delete "/internal/v1/plugins/{plugin}/{digest}" Operator plugins::api::uninstall "Uninstall a version of a plugin that serves nobody" [409];
        get    "/internal/v1/plugins/{plugin}/recordings" Operator recordings::api::list "List calls of a plugin that were written down" [];
        get    "/internal/v1/plugins/{plugin}/recordings/{recording}" Operator recordings::api::fetch "Show a call that was written down" [];
        get    "/internal/v1/publishers" Operator plugins::api::publishers::list "List whose plugins are taken" [];
        put    "/internal/v1/publishers/{publisher}" Operator plugins::api::publishers::trust "Take the plugins of a publisher, known by its keys" [409];
        delete "/internal/v1/publishers/{publisher}" Operator plugins::api::publishers::distrust "Take no more plugins of a publisher" [409];
    }
}

macro_rules! webhooks {
    ($($kind:literal $data:ty: $summary:literal;)*) => {
        vec![$(Webhook {
            kind: $kind,
            summary: $summary,
            schema: SchemaGenerator::subschema_for::<events::Message<'static, $data>>,
        }),*]
    };
}

/// What companies are told at their event URL. A line: kind, what its data is, and what has happened.
#[must_use]
pub fn webhooks() -> Vec<Webhook> {
    webhooks! {
        "card.validation.success" cards::EventData: "A card was verified, and can be charged";
        "card.validation.failed" cards::EventData: "The verification charge of a card failed";
        "payment.success" payments::EventData: "A customer was charged";
        "payment.failed" payments::EventData: "A customer was not charged";
        "payment.refunded" payments::EventData: "A payment was given back";
        "recollection.success" recollections::EventData: "A loan was repaid";
        "recollection.failed" recollections::EventData: "A repayment was not made";
    }
}

/// What metrics call the listener that has these routes.
fn name_of(routes: &[Route]) -> &'static str {
    let is_internal = routes.iter().any(|route| route.access == Access::Operator);
    if is_internal { "internal" } else { "public" }
}

/// The service of one listener.
pub fn router(app: &App, routes: Vec<Route>) -> Router {
    let listener = name_of(&routes);
    let document = Document::of(&routes);
    let rooms = Rooms::new(app.settings.http.requests);
    let mut router = Router::new();
    for Route { path, access, takes, handler, .. } in routes {
        let usual = app.settings.http.body_bytes;
        let most = match UPLOADS.iter().find(|(uploads, _)| path == *uploads) {
            Some((_, most)) => usual.max(*most),
            None if COMPONENTS.contains(&path) => app.plugins.most_component_bytes(),
            None => usual,
        };
        let gate =
            Gate { app: app.clone(), access, sizes: Sizes { usual, most }, rooms: rooms.clone() };
        let gated = |handler: MethodRouter<Shared>| -> MethodRouter<Shared> {
            handler.layer(middleware::from_fn_with_state(gate, gate::pass))
        };
        let handler = match access {
            Access::Always => handler,
            // Providers and load balancers add parameters of their own.
            Access::Open => gated(handler),
            Access::Company | Access::Operator => {
                gated(handler.layer(middleware::from_fn_with_state(takes, query::check)))
            }
        };
        router = router.route(path, handler);
    }
    router
        .method_not_allowed_fallback(async || Error::MethodNotAllowed)
        .fallback(async || Error::not_found("there is nothing at this path"))
        .layer(Extension(document))
        .layer(DefaultBodyLimit::disable()) // bodies are bounded where the gate reads them
        .layer(CatchPanicLayer::custom(answer::panicked))
        .layer(middleware::from_fn_with_state(app.clone(), headers::guard))
        .layer(middleware::from_fn_with_state((app.clone(), listener), request_id::trace))
        .with_state(Shared(app.clone()))
}
