//! The headers of every request and answer, whatever was asked.

use axum::{
    extract::{Request, State},
    http::{HeaderValue, header},
    middleware::Next,
    response::{IntoResponse, Response},
};

use super::limits::check_headers;
use crate::app::App;

/// Two years.
const TRANSPORT: HeaderValue = HeaderValue::from_static("max-age=63072000");

/// Answers belong to the caller: nothing on the way may keep them, and no browser may take them for something else.
pub async fn guard(State(app): State<App>, request: Request, next: Next) -> Response {
    let path = request.uri().path();
    let private = path.starts_with("/api/") || path.starts_with("/internal/");
    let checked = check_headers(&app.settings.http, path, request.headers());
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

/// A browser that has been here by TLS comes by TLS again.
pub async fn strict_transport(mut response: Response) -> Response {
    response.headers_mut().insert(header::STRICT_TRANSPORT_SECURITY, TRANSPORT);
    response
}
