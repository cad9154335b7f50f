//! The limits of the server for pages that people use in a browser.

use axum::{Router, extract::Request, middleware, middleware::Next, response::Response};
use tokio::time::timeout;
use tower_http::catch_panic::CatchPanicLayer;

use super::{Server, access_log, concurrency::ConcurrencyLimiters, headers};
use crate::{
    response,
    settings::limits::{BodyLimits, read_body, timeout_error},
};
use tollhouse_platform::error::{Error, Result};

/// Largest form in bytes.
const MAX_FORM_BYTES: usize = 64 << 10;

/// Admits requests for pages. Cheap to clone.
#[derive(Clone)]
pub struct PageGate {
    server: Server,
    limiters: ConcurrencyLimiters,
}

impl PageGate {
    #[must_use]
    pub fn new(server: &Server) -> PageGate {
        let limiters = ConcurrencyLimiters::new(server.limits.requests);
        PageGate { server: server.clone(), limiters }
    }

    /// Handles a request within the limits of the server: on concurrency, on the size of a form and
    /// on the durations of reading it and of the whole request.
    pub async fn handle(&self, request: Request, next: Next) -> Result<Response> {
        let _permit = self.limiters.unauthenticated.try_acquire()?;
        let sizes = BodyLimits { usual: MAX_FORM_BYTES, max: MAX_FORM_BYTES };
        let upload = || self.limiters.uploads.try_acquire_for(None);
        let read = timeout(self.server.limits.body_timeout, read_body(request, sizes, upload));
        let (request, _) = read.await.map_err(|_| Error::RequestTimeout)??;
        let (method, limit) = (request.method().clone(), self.server.limits.request_timeout);
        timeout(limit, next.run(request)).await.map_err(|_| timeout_error(&method, limit))
    }
}

/// Adds the access log, the limit of headers and the handling of panics to a router of pages.
pub fn served<S>(server: &Server, name: &'static str, pages: Router<S>) -> Router<S>
where
    S: Clone + Send + Sync + 'static,
{
    pages
        .layer(CatchPanicLayer::custom(response::panic_response))
        .layer(middleware::from_fn_with_state(server.clone(), headers::apply_header_policy))
        .layer(middleware::from_fn_with_state((server.clone(), name), access_log::record))
}
