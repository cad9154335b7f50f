//! The router of a listener: each route behind its pipeline.

use std::sync::Arc;

use axum::{Extension, Router, extract::DefaultBodyLimit, middleware, routing::MethodRouter};
use tower_http::catch_panic::CatchPanicLayer;

use super::{
    Server, access_log,
    auth::Principals,
    concurrency::ConcurrencyLimiters,
    headers,
    pipeline::{self, RequestPipeline},
};
use crate::{
    Access, Route, openapi::docs::Document, request::query, response, settings::limits::BodyLimits,
};
use tollhouse_platform::error::Error;

/// Returns the largest body of a path in bytes, if it may exceed the general limit.
pub type MaxBodySize = Box<dyn Fn(&str) -> Option<usize>>;

/// The interface of one listener.
pub struct Interface<S, P> {
    /// Label of the listener in metrics: `public` or `internal`.
    pub name: &'static str,
    pub routes: Vec<Route<S>>,
    pub state: S,
    pub principals: P,
    pub document: Document,
    pub max_body_size: MaxBodySize,
}

/// Builds the router of one listener.
pub fn router<S, P>(server: &Server, interface: Interface<S, P>) -> Router
where
    S: Clone + Send + Sync + 'static,
    P: Principals,
{
    let Interface { name, routes, state, principals, document, max_body_size } = interface;
    let limiters = ConcurrencyLimiters::new(server.limits.requests);
    let mut router = Router::new();
    for route in routes {
        let known = document.query_parameters(&route);
        let field_names = Arc::new(document.field_names(&route));
        let Route { path, access, handler, .. } = route;
        let usual = server.limits.body_bytes;
        let sizes =
            BodyLimits { usual, max: max_body_size(path).map_or(usual, |most| usual.max(most)) };
        let (server, principals, limiters) = (server.clone(), principals.clone(), limiters.clone());
        let gate = RequestPipeline { server, principals, access, sizes, limiters, field_names };
        let gated = |handler: MethodRouter<S>| -> MethodRouter<S> {
            handler.layer(middleware::from_fn_with_state(gate, pipeline::handle))
        };
        let handler = match access {
            Access::Unthrottled => handler,
            // Providers and load balancers may add parameters.
            Access::Unauthenticated => gated(handler),
            Access::Company(_) | Access::Operator(_) => gated(
                handler
                    .layer(middleware::from_fn_with_state(known, query::reject_unknown_parameters)),
            ),
        };
        router = router.route(path, handler);
    }
    router
        .method_not_allowed_fallback(async || Error::MethodNotAllowed)
        .fallback(async || Error::not_found("path not found"))
        .layer(Extension(document))
        .layer(DefaultBodyLimit::disable()) // the pipeline limits bodies
        .layer(CatchPanicLayer::custom(response::panic_response))
        .layer(middleware::from_fn_with_state(server.clone(), headers::apply_header_policy))
        .layer(middleware::from_fn_with_state((server.clone(), name), access_log::record))
        .with_state(state)
}
