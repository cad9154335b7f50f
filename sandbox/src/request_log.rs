//! A record of the requests to a provider, for tests that count them.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
};

use axum::{
    extract::{OriginalUri, Request, State},
    middleware::Next,
    response::Response,
};

use crate::locked;

/// Number of requests kept, the newest ones.
const MAX_RECORDED: usize = 10_000;

/// Method and path of each request. Cheap to clone; clones share the list.
#[derive(Clone, Default)]
pub(crate) struct RequestLog(Arc<Mutex<VecDeque<(String, String)>>>);

impl RequestLog {
    /// Returns the requests, oldest first.
    pub(crate) fn list(&self) -> Vec<(String, String)> {
        locked(&self.0).iter().cloned().collect()
    }

    fn add(&self, method: String, path: String) {
        let mut requests = locked(&self.0);
        if requests.len() == MAX_RECORDED {
            requests.pop_front();
        }
        requests.push_back((method, path));
    }
}

/// Middleware that records an API's requests; `base` is its path in the sandbox, in place of the
/// provider's own base URL.
pub(crate) async fn record_request(
    State((requests, base)): State<(RequestLog, &'static str)>,
    request: Request,
    next: Next,
) -> Response {
    let uri =
        request.extensions().get::<OriginalUri>().map_or(request.uri(), |original| &original.0);
    let path = uri.path();
    let path = path.strip_prefix(base).unwrap_or(path).to_owned();
    requests.add(request.method().to_string(), path);
    next.run(request).await
}
