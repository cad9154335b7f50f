//! Headers of every request and response.

use axum::{
    extract::{Request, State},
    http::{HeaderValue, header},
    middleware::Next,
    response::{IntoResponse, Response},
};

use super::Server;
use crate::settings::limits::check_headers;

/// Limits request headers. Forbids caching of API responses, and content sniffing.
pub async fn apply_header_policy(
    State(server): State<Server>,
    request: Request,
    next: Next,
) -> Response {
    let path = request.uri().path();
    let private = path.starts_with("/api/") || path.starts_with("/internal/");
    let checked = check_headers(&server.limits, path, request.headers());
    let mut response = match checked {
        Ok(()) => next.run(request).await,
        Err(error) => error.into_response(),
    };
    let headers = response.headers_mut();
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    if private {
        headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    }
    response
}
