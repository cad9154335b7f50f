//! Headers of every request and response.

use axum::{
    extract::{Request, State},
    http::{HeaderValue, header},
    middleware::Next,
    response::{IntoResponse, Response},
};

use super::Server;
use tollhouse_platform::error::Error;

/// Refuses requests with too many headers, or whose path and headers together are too long. Forbids
/// caching of API responses and content sniffing.
pub async fn apply_header_policy(
    State(server): State<Server>,
    request: Request,
    next: Next,
) -> Response {
    let path = request.uri().path();
    let private = path.starts_with("/api/") || path.starts_with("/internal/");
    let (limits, headers) = (&server.limits, request.headers());
    let bytes = headers.iter().map(|(name, value)| name.as_str().len() + value.len());
    let bytes = bytes.sum::<usize>() + path.len();
    let mut response = if headers.len() > limits.header_count || bytes > limits.header_bytes {
        Error::HeadersTooLarge.into_response()
    } else {
        next.run(request).await
    };
    let headers = response.headers_mut();
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    if private {
        headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    }
    response
}
