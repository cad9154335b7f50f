//! Files of the pages, embedded in the program.

use axum::{
    extract::Path,
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};

/// Files by name, with their content type.
const FILES: &[(&str, &str, &[u8])] = &[
    ("console.css", "text/css; charset=utf-8", include_bytes!("../assets/console.css")),
    ("console.js", "text/javascript; charset=utf-8", include_bytes!("../assets/console.js")),
    // htmx 2.0.11, as published.
    ("htmx.js", "text/javascript; charset=utf-8", include_bytes!("../assets/htmx.min.js")),
    ("icon.svg", "image/svg+xml", include_bytes!("../assets/icon.svg")),
];

pub async fn serve(Path(file): Path<String>) -> Response {
    let Some((_, kind, content)) = FILES.iter().find(|(name, ..)| *name == file) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static(kind)),
        (header::CACHE_CONTROL, HeaderValue::from_static("private, max-age=300")),
    ];
    (headers, *content).into_response()
}
