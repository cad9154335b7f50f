//! What Prometheus collects: on the internal listener, without a key, since it names nobody.

use axum::{
    extract::State,
    http::header,
    response::{IntoResponse, Response},
};
use serde_json::json;

use super::openapi::{Describe, Operation};
use crate::{app::App, telemetry::OPENMETRICS};

/// All metrics, as text.
pub struct Page(String);

impl IntoResponse for Page {
    fn into_response(self) -> Response {
        ([(header::CONTENT_TYPE, OPENMETRICS)], self.0).into_response()
    }
}

impl Describe for Page {
    fn describe(operation: &mut Operation<'_>) {
        operation.answers(OPENMETRICS, json!({ "type": "string" }));
    }
}

pub async fn scrape(State(app): State<App>) -> Page {
    Page(app.telemetry.scrape())
}
