//! HTML pages for people: the console for operators, on the internal listener, and the portal for
//! the members of companies, on the public one.
//!
//! The pages are a client of the internal interface. They call the interface's router in the same
//! process, with the session of the person who signed in, so that permissions, limits to companies
//! and the audit log are those of the interface, and everything that a page shows is also available
//! through the API. Pages work without scripts.

mod api;
mod assets;
mod chart;
mod cookie;
mod form;
mod format;
mod page;
mod pages;
mod session;
mod site;

use std::sync::Arc;

use axum::{
    Router, middleware,
    routing::{get, post},
};

use self::api::Api;
pub use self::site::Site;
use tollhouse_http::{PageGate, Server};

/// Options of a site.
#[derive(Clone, Debug)]
pub struct ConsoleOptions {
    pub site: Site,
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

/// Builds the pages of a site. `interface` is the router of the internal interface.
pub fn router(server: &Server, interface: Router, options: ConsoleOptions) -> Router {
    let site = options.site;
    let console = Console { api: Api::new(interface), options };
    let pages = match site {
        Site::Console => shared_pages().merge(service_pages()),
        Site::Portal => shared_pages(),
    };
    let pages = Router::new()
        .nest(site.root(), pages)
        .layer(middleware::from_fn_with_state(PageGate::new(server), page::admit))
        .layer(middleware::from_fn_with_state(site, page::finish));
    tollhouse_http::pages::served(server, &site.root()[1..], pages).with_state(console)
}

/// The pages of both sites: signing in, and the companies of a person.
fn shared_pages() -> Router<Console> {
    Router::new()
        .route("/", get(pages::home::show))
        .route("/assets/{file}", get(assets::serve))
        .route("/sign-in", get(pages::access::sign_in::show).post(pages::access::sign_in::submit))
        .route(
            "/welcome/{invitation}",
            get(pages::access::welcome::show).post(pages::access::welcome::submit),
        )
        .route("/sign-out", post(pages::access::sign_in::sign_out))
        .route("/views/{list}", post(pages::views::save))
        .route("/views/{list}/{view}/delete", post(pages::views::delete))
        .nest("/companies/{company}", pages::companies::router())
        .route("/{*page}", get(page::not_found))
}

/// The pages of operators only.
fn service_pages() -> Router<Console> {
    Router::new()
        .nest("/companies/{company}", pages::companies::operators_router())
        .route("/sign-in/oidc", get(pages::access::oidc::begin))
        .route("/sign-in/oidc/callback", get(pages::access::oidc::callback))
        .route("/companies", get(pages::companies::list))
        .route("/today", get(pages::today::show))
        .route("/totals", get(pages::finance::of_service))
        .route("/refunds", get(pages::refunds::list))
        .route("/disputes", get(pages::companies::payments::disputes::list))
        .route("/exceptions", get(pages::exceptions::list))
        .route(
            "/exceptions/{exception}",
            get(pages::exceptions::show).post(pages::exceptions::resolve),
        )
        .route("/exceptions/{exception}/edit", post(pages::exceptions::edit))
        .route("/reconciliation", get(pages::reconciliation::list))
        .route("/reconciliation/{account}", get(pages::reconciliation::days))
        .route("/reconciliation/{account}/reconcile", post(pages::reconciliation::reconcile))
        .route("/reconciliation/{account}/{day}", get(pages::reconciliation::show))
        .route("/reconciliation/{account}/{day}/close", post(pages::reconciliation::close))
        .merge(pages::platform::router())
        .route("/operators", get(pages::access::operators::list))
        .route("/approvals", get(pages::access::approvals::list))
        .route("/approvals/{approval}/{decision}", post(pages::access::approvals::decide))
        .route("/audit", get(pages::access::audit::of_service))
}
