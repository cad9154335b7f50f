//! Routes: what a listener serves, and which principals may call it.

use std::sync::Arc;

use axum::{extract::Request, handler::Handler, response::Response, routing::MethodRouter};
use futures::future::BoxFuture;

use super::openapi::Description;

/// The name of a permission of operators or of a scope of API keys, for example `payments.read`.
/// The application defines them.
pub type Permission = &'static str;

/// The permission of routes that every operator may call.
pub const ANY_OPERATOR: Permission = "";

/// The principals that may call a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// A company with an active subscription, authenticated by an API key with this scope.
    Company(Permission),
    /// An operator with this permission, on the internal listener only.
    Operator(Permission),
    /// Unauthenticated clients: the handler decides which requests to trust.
    Unauthenticated,
    /// Unauthenticated clients, even under overload: health and metrics must stay available.
    Unthrottled,
}

/// A route: one method of one path. `S` is the state of its handler.
pub struct Route<S> {
    pub method: &'static str,
    pub path: &'static str,
    pub access: Access,
    /// Its handler in the code: `payments::api::initialize`.
    pub handled_by: &'static str,
    pub summary: &'static str,
    /// Failure statuses that do not follow from its access, arguments and response.
    pub fails: &'static [u16],
    pub describe: Description,
    pub handler: MethodRouter<S>,
}

impl<S> Route<S> {
    /// Returns its `operationId`: `payments.initialize`.
    #[must_use]
    pub fn id(&self) -> String {
        self.handled_by.replace(' ', "").replace("::api::", ".").replace("::", ".")
    }

    /// Returns whether it changes state for an authenticated principal.
    #[must_use]
    pub fn takes_idempotency_key(&self) -> bool {
        let caller_is_known = matches!(self.access, Access::Company(_) | Access::Operator(_));
        self.method != "get" && caller_is_known
    }
}

/// A handler without its type, so that the services in which axum wraps it are compiled once, not
/// for each handler.
#[derive(Clone)]
pub struct ErasedHandler<S>(Arc<dyn Fn(Request, S) -> BoxFuture<'static, Response> + Send + Sync>);

impl<S: 'static> ErasedHandler<S> {
    pub fn new<H, T>(handler: H) -> ErasedHandler<S>
    where
        H: Handler<T, S, Future = BoxFuture<'static, Response>>,
    {
        ErasedHandler(Arc::new(move |request, state| handler.clone().call(request, state)))
    }
}

impl<S: Clone + 'static> Handler<(), S> for ErasedHandler<S> {
    type Future = BoxFuture<'static, Response>;

    fn call(self, request: Request, state: S) -> Self::Future {
        (self.0)(request, state)
    }
}
