//! The Prometheus endpoint, on the internal listener. No key: metrics have no personal data.

use axum::{
    extract::State,
    http::header,
    response::{IntoResponse, Response},
};
use serde_json::json;

use super::Server;
use crate::openapi::{Describe, Operation};
use tollhouse_platform::telemetry::OPENMETRICS;

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

pub async fn scrape(State(server): State<Server>) -> Page {
    Page(server.telemetry.scrape())
}
