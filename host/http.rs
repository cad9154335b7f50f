//! The HTTP interfaces: every route of both listeners stands in the table below.

pub mod answer;
mod auth;
pub mod body;
mod health;
mod metrics;
pub mod path;
pub mod query;
mod request_id;
mod serve;

use axum::{
    Router,
    extract::DefaultBodyLimit,
    middleware,
    routing::{self, MethodRouter},
};
use tower_http::catch_panic::CatchPanicLayer;

pub use self::{auth::Caller, serve::serve};
use crate::{
    app::App, audit, companies, error::Error, events, notifications, payments, plugins, providers,
    users, wallet,
};

const MOST_BODY_BYTES: usize = 1 << 20;

/// Who may call a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// A company with an active subscription, by its API key.
    Company,
    /// The operator, by the operator token; on the internal listener only.
    Operator,
    /// Anyone: the route itself says whom it believes.
    Open,
}

pub struct Route {
    pub method: &'static str,
    pub path: &'static str,
    pub access: Access,
    handler: MethodRouter<App>,
}

macro_rules! routes {
    ($($method:ident $path:literal $access:ident $handler:expr;)*) => {
        vec![$(Route {
            method: stringify!($method),
            path: $path,
            access: Access::$access,
            handler: routing::$method($handler),
        }),*]
    };
}

/// What companies and providers call.
#[must_use]
pub fn public_routes() -> Vec<Route> {
    routes! {
        get  "/health/live" Open health::live;
        get  "/health/ready" Open health::ready;
        post "/api/v1/user/create" Company users::api::create;
        get  "/api/v1/user/fetch/{email_or_id}" Company users::api::fetch;
        post "/api/v1/payment/initialize" Company payments::api::initialize;
        post "/api/v1/payment/verify/{reference}" Company payments::api::verify;
        get  "/api/v1/payment/fetch/{id}" Company payments::api::fetch;
        get  "/api/v1/payment/fetch/reference/{reference}" Company payments::api::fetch_by_reference;
        get  "/api/v1/payment/list" Company payments::api::list;
        post "/api/v1/notifications/{provider}/{account}" Open notifications::api::receive;
    }
}

/// What operators and neighbouring systems call.
#[must_use]
pub fn internal_routes() -> Vec<Route> {
    routes! {
        get    "/health/live" Open health::live;
        get    "/health/ready" Open health::ready;
        get    "/metrics" Open metrics::scrape;
        post   "/internal/v1/companies" Operator companies::api::create;
        get    "/internal/v1/companies" Operator companies::api::list;
        get    "/internal/v1/companies/{company}" Operator companies::api::fetch;
        patch  "/internal/v1/companies/{company}" Operator companies::api::edit;
        post   "/internal/v1/companies/{company}/event-secret/rotate" Operator companies::api::rotate_event_secret;
        post   "/internal/v1/companies/{company}/keys" Operator companies::api::create_key;
        get    "/internal/v1/companies/{company}/keys" Operator companies::api::list_keys;
        delete "/internal/v1/companies/{company}/keys/{key}" Operator companies::api::revoke_key;
        put    "/internal/v1/companies/{company}/subscription" Operator companies::api::subscribe;
        put    "/internal/v1/companies/{company}/providers/{provider}" Operator providers::api::set_for_company;
        get    "/internal/v1/companies/{company}/providers" Operator providers::api::list_for_company;
        put    "/internal/v1/providers/{provider}" Operator providers::api::set_for_service;
        get    "/internal/v1/providers" Operator providers::api::list_for_service;
        get    "/internal/v1/companies/{company}/wallet" Operator wallet::api::fetch;
        post   "/internal/v1/companies/{company}/wallet/credit" Operator wallet::api::credit;
        post   "/internal/v1/companies/{company}/wallet/debit" Operator wallet::api::debit;
        get    "/internal/v1/companies/{company}/wallet/entries" Operator wallet::api::entries;
        get    "/internal/v1/companies/{company}/events" Operator events::api::list;
        get    "/internal/v1/companies/{company}/events/{event}/attempts" Operator events::api::attempts;
        post   "/internal/v1/companies/{company}/events/{event}/redeliver" Operator events::api::redeliver;
        post   "/internal/v1/companies/{company}/payments/{payment}/refund" Operator payments::api::refund;
        get    "/internal/v1/companies/{company}/payments/{payment}/refund" Operator payments::api::fetch_refund;
        get    "/internal/v1/companies/{company}/audit" Operator audit::api::of_company;
        get    "/internal/v1/audit" Operator audit::api::of_service;
        get    "/internal/v1/plugins" Operator plugins::api::list;
        post   "/internal/v1/plugins" Operator plugins::api::install;
        post   "/internal/v1/clock/advance" Operator health::advance_clock;
    }
}

/// The service of one listener.
pub fn router(app: &App, routes: Vec<Route>) -> Router {
    let is_internal = routes.iter().any(|route| route.access == Access::Operator);
    let listener = if is_internal { "internal" } else { "public" };
    let mut router = Router::new();
    for Route { path, access, handler, .. } in routes {
        let handler = match access {
            Access::Company => {
                handler.layer(middleware::from_fn_with_state(app.clone(), auth::company))
            }
            Access::Operator => {
                handler.layer(middleware::from_fn_with_state(app.clone(), auth::operator))
            }
            Access::Open => handler,
        };
        router = router.route(path, handler);
    }
    router
        .method_not_allowed_fallback(async || Error::MethodNotAllowed)
        .fallback(async || Error::not_found("there is nothing at this path"))
        .layer(DefaultBodyLimit::max(MOST_BODY_BYTES))
        .layer(CatchPanicLayer::custom(answer::panicked))
        .layer(middleware::from_fn_with_state((app.clone(), listener), request_id::trace))
        .with_state(app.clone())
}
