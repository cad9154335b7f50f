//! Every request has an id: the caller's or a new one. It is returned, and stands in every log line of the request.

use axum::{
    extract::{MatchedPath, Request, State},
    http::{HeaderMap, HeaderName, HeaderValue},
    middleware::Next,
    response::Response,
};
use tracing::Instrument;

use crate::app::App;

const HEADER: HeaderName = HeaderName::from_static("x-request-id");
const MOST_BYTES: usize = 128;

pub async fn trace(State(app): State<App>, request: Request, next: Next) -> Response {
    let id = callers(request.headers()).unwrap_or_else(|| app.new_id());
    // The route, not the path: paths hold e-mail addresses and references.
    let route = request.extensions().get::<MatchedPath>().map(|path| path.as_str().to_owned());
    let span = tracing::info_span!(
        "request",
        id,
        method = %request.method(),
        route = route.unwrap_or_default()
    );
    let mut response = async {
        let response = next.run(request).await;
        tracing::info!(status = response.status().as_u16(), "answered");
        response
    }
    .instrument(span)
    .await;
    if let Ok(value) = HeaderValue::from_str(&id) {
        response.headers_mut().insert(HEADER, value);
    }
    response
}

fn callers(headers: &HeaderMap) -> Option<String> {
    let id = headers.get(&HEADER)?.to_str().ok()?;
    let visible = |b: u8| b.is_ascii_graphic();
    (!id.is_empty() && id.len() <= MOST_BYTES && id.bytes().all(visible)).then(|| id.to_owned())
}
