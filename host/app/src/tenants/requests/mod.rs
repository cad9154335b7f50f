//! The API log: requests of companies to the API, for their developers, kept for some days. It
//! omits paths, query strings, bodies and messages, which may contain personal data.
//!
//! Each ended request is added to a buffer, which a background task saves.

pub mod api;
mod store;

use std::sync::Arc;

use self::store::{ApiRequest, NewRequest};
use crate::state::{logs, prelude::*};
use tollhouse_http::{CompletedRequest, RequestRecorder};
use tollhouse_platform::{
    background::log_buffer::{LogBuffer, entry_id},
    telemetry::metric::Counter,
};

/// Returns the recorder of API requests, and the buffer that it fills. `dropped` counts the
/// requests that are not recorded.
pub fn recorder(dropped: &Counter) -> (RequestRecorder, LogBuffer<CompletedRequest>) {
    let buffer = LogBuffer::new(dropped);
    let filled = buffer.clone();
    (Arc::new(move |request| filled.push(request)), buffer)
}

/// Saves the buffered requests and returns their number.
pub async fn flush(app: &App) -> Result<usize> {
    let buffer = app.slot::<LogBuffer<CompletedRequest>>();
    let keep_until = logs::keep_until(app, app.settings.api_log_days);
    let to_row = |number, request: CompletedRequest| NewRequest {
        company_id: request.company_id.clone(),
        keep_until,
        request: to_record(entry_id(&app.random, number, request.began_at), request),
    };
    let insert = async |tx: &mut Tx, rows: Arc<[NewRequest]>| store::insert(tx, &rows).await;
    logs::save_buffered(app, buffer, to_row, insert).await
}

fn to_record(id: String, request: CompletedRequest) -> ApiRequest {
    let (kind, field) = request.error.map(|error| (error.kind, error.field)).unzip();
    ApiRequest {
        id,
        created_at: request.began_at,
        request_id: request.origin.request_id,
        key_id: request.key_id,
        key_prefix: None,
        address: request.origin.address.map(|address| address.to_string()),
        method: request.method.to_owned(),
        route: request.route.to_string(),
        status: request.status.into(),
        duration_us: i64::try_from(request.duration.as_micros()).unwrap_or(i64::MAX),
        error: kind.map(str::to_owned),
        field: field.flatten(),
    }
}

/// Deletes expired requests and returns their number.
pub async fn sweep(app: App) -> Result<u64> {
    let now = app.clock.now();
    let sweep = async move |tx: &mut Tx, most| store::sweep(tx, now, most).await;
    Ok(app.store.write_in_batches(sweep).await?)
}
