//! The operator console: HTML pages on the internal listener, for people.
//!
//! The console is a client of the internal interface. It calls the interface's router in the same
//! process, with the session of the person who signed in, so that permissions, limits to companies
//! and the audit log are those of the interface, and everything that a page shows can also be had
//! by API. Pages work without scripts.

mod api;
mod assets;
mod chart;
mod cookie;
mod format;
mod page;
mod pages;
mod session;

use std::sync::Arc;

use axum::{
    Router, middleware,
    routing::{get, post},
};

use self::api::Api;
use tollhouse_http::Server;

/// Options of the console.
#[derive(Clone, Debug)]
pub struct ConsoleOptions {
    /// Whether browsers reach the listener by TLS, so that cookies may require it.
    pub secure: bool,
    /// Name of the OpenID provider with which people sign in; `None`: with passwords.
    pub openid_provider: Option<Arc<str>>,
}

/// The state of all pages.
#[derive(Clone)]
struct Console {
    api: Api,
    options: ConsoleOptions,
}

/// Builds the pages under `/console`. `interface` is the router of the internal interface.
pub fn router(server: &Server, interface: Router, options: ConsoleOptions) -> Router {
    let console = Console { api: Api::new(interface), options };
    Router::new()
        .route("/console", get(pages::home::show))
        .route("/console/assets/{file}", get(assets::serve))
        .route(
            "/console/sign-in",
            get(pages::access::sign_in::show).post(pages::access::sign_in::submit),
        )
        .route("/console/sign-in/oidc", get(pages::access::oidc::begin))
        .route("/console/sign-in/oidc/callback", get(pages::access::oidc::callback))
        .route(
            "/console/welcome/{invitation}",
            get(pages::access::welcome::show).post(pages::access::welcome::submit),
        )
        .route("/console/sign-out", post(pages::access::sign_in::sign_out))
        .route("/console/companies", get(pages::companies::list))
        .nest("/console/companies/{company}", pages::companies::router())
        .route("/console/today", get(pages::today::show))
        .route("/console/totals", get(pages::finance::of_service))
        .route("/console/refunds", get(pages::refunds::list))
        .route("/console/exceptions", get(pages::exceptions::list))
        .route("/console/jobs", get(pages::jobs::list))
        .route("/console/jobs/retry", post(pages::jobs::retry))
        .route("/console/plugins", get(pages::plugins::list))
        .route("/console/operators", get(pages::access::operators::list))
        .route("/console/approvals", get(pages::access::approvals::list))
        .route("/console/approvals/{approval}/{decision}", post(pages::access::approvals::decide))
        .route("/console/audit", get(pages::access::audit::of_service))
        .route("/console/{*page}", get(page::not_found))
        .layer(middleware::from_fn(page::apply_policy))
        .layer(middleware::from_fn_with_state(
            (server.clone(), "console"),
            tollhouse_http::server::access_log::record,
        ))
        .with_state(console)
}
