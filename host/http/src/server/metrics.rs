//! The Prometheus endpoint of the internal listener. It needs no key, because metrics contain no
//! personal data.

use axum::{
    extract::State,
    http::header,
    response::{IntoResponse, Response},
};
use serde_json::json;

use super::Server;
use crate::openapi::{Describe, Operation};
use tollhouse_platform::telemetry::OPENMETRICS_CONTENT_TYPE;

/// All metrics, as text.
pub struct MetricsPage(String);

impl IntoResponse for MetricsPage {
    fn into_response(self) -> Response {
        ([(header::CONTENT_TYPE, OPENMETRICS_CONTENT_TYPE)], self.0).into_response()
    }
}

impl Describe for MetricsPage {
    fn describe(operation: &mut Operation<'_>) {
        operation.set_response(OPENMETRICS_CONTENT_TYPE, json!({ "type": "string" }));
    }
}

pub async fn scrape(State(server): State<Server>) -> MetricsPage {
    MetricsPage(server.telemetry.scrape())
}
