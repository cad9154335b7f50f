//! The access log: one line per request with its status and duration, besides the metrics, the
//! trace span and the log of API requests. Assigns the request id, the client's or a new one, which
//! is in the response and in every log line of the request.

use axum::{
    extract::{MatchedPath, Request, State},
    http::{HeaderMap, HeaderName, HeaderValue},
    middleware::Next,
    response::Response,
};
use tracing::Instrument;

use super::{Server, auth::RequestId, request_log::LoggedRequest};
use tollhouse_platform::telemetry::spans;

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const MAX_ID_BYTES: usize = 128;

/// The state is the server and the name of its listener.
pub async fn record(
    State((server, listener)): State<(Server, &'static str)>,
    mut request: Request,
    next: Next,
) -> Response {
    let id = client_request_id(request.headers())
        .unwrap_or_else(|| server.random.id(server.clock.now()));
    let method = request.method().clone();
    // The route, not the path: paths hold e-mail addresses and references.
    let route = request.extensions().get::<MatchedPath>().map_or("", MatchedPath::as_str);
    let span = tracing::info_span!("request", id, %method, route);
    let traced = spans::request(&id, method.as_str(), route, request.headers());
    let exchange = server.metrics.requests.begin(listener, method.as_str(), route.into());
    request.extensions_mut().insert(RequestId(id.clone()));
    let exchange = exchange.logged_by(LoggedRequest::begin(&server, &mut request));
    let mut response = async {
        let mut exchange = exchange; // dropped within the span
        let response = next.run(request).await;
        exchange.set_response(&response);
        let status = response.status().as_u16();
        tracing::info!(status, duration_ms = exchange.elapsed_ms(), "request completed");
        response
    }
    .instrument(span)
    .instrument(traced.clone())
    .await;
    spans::record_status(&traced, response.status().as_u16());
    if let Ok(value) = HeaderValue::from_str(&id) {
        response.headers_mut().insert(REQUEST_ID, value);
    }
    response
}

fn client_request_id(headers: &HeaderMap) -> Option<String> {
    let id = headers.get(&REQUEST_ID)?.to_str().ok()?;
    let visible = |b: u8| b.is_ascii_graphic();
    (!id.is_empty() && id.len() <= MAX_ID_BYTES && id.bytes().all(visible)).then(|| id.to_owned())
}
