//! The router of a listener: each route behind its pipeline.

use axum::{Extension, Router, extract::DefaultBodyLimit, middleware, routing::MethodRouter};
use tower_http::catch_panic::CatchPanicLayer;

use super::{
    Server,
    auth::Principals,
    gate::{self, Gate},
    headers, request_id,
    room::Rooms,
};
use crate::{
    Access, Route, answer, openapi::docs::Document, request::query, settings::limits::Sizes,
};
use tollhouse_platform::error::Error;

/// Returns the largest body of a path in bytes, if it may exceed the general limit.
pub type LargestBody = Box<dyn Fn(&str) -> Option<usize>>;

/// The interface of one listener.
pub struct Interface<S, P> {
    /// Label of the listener in metrics: `public` or `internal`.
    pub name: &'static str,
    pub routes: Vec<Route<S>>,
    pub state: S,
    pub principals: P,
    pub document: Document,
    pub largest_body: LargestBody,
}

/// Builds the router of one listener.
pub fn router<S, P>(server: &Server, interface: Interface<S, P>) -> Router
where
    S: Clone + Send + Sync + 'static,
    P: Principals,
{
    let Interface { name, routes, state, principals, document, largest_body } = interface;
    let rooms = Rooms::new(server.limits.requests);
    let mut router = Router::new();
    for Route { path, access, takes, handler, .. } in routes {
        let usual = server.limits.body_bytes;
        let sizes = Sizes { usual, most: largest_body(path).map_or(usual, |most| usual.max(most)) };
        let (server, principals, rooms) = (server.clone(), principals.clone(), rooms.clone());
        let gate = Gate { server, principals, access, sizes, rooms };
        let gated = |handler: MethodRouter<S>| -> MethodRouter<S> {
            handler.layer(middleware::from_fn_with_state(gate, gate::pass))
        };
        let handler = match access {
            Access::Always => handler,
            // Providers and load balancers may add parameters.
            Access::Open => gated(handler),
            Access::Company | Access::Operator => {
                gated(handler.layer(middleware::from_fn_with_state(takes, query::check)))
            }
        };
        router = router.route(path, handler);
    }
    router
        .method_not_allowed_fallback(async || Error::MethodNotAllowed)
        .fallback(async || Error::not_found("path not found"))
        .layer(Extension(document))
        .layer(DefaultBodyLimit::disable()) // the pipeline limits bodies
        .layer(CatchPanicLayer::custom(answer::panicked))
        .layer(middleware::from_fn_with_state(server.clone(), headers::guard))
        .layer(middleware::from_fn_with_state((server.clone(), name), request_id::trace))
        .with_state(state)
}
