//! What Prometheus collects: on the internal listener, without a key, since it names nobody.

use axum::{
    extract::State,
    http::header,
    response::{IntoResponse, Response},
};

use crate::{app::App, telemetry::OPENMETRICS};

pub async fn scrape(State(app): State<App>) -> Response {
    ([(header::CONTENT_TYPE, OPENMETRICS)], app.telemetry.scrape()).into_response()
}
