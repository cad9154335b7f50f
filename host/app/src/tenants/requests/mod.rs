//! The API log: requests of companies to the API, for their developers, kept for some days. Without
//! paths, query strings, bodies and messages, which may contain personal data.
//!
//! A request that has ended is put into a buffer. A background task saves the buffer once a second,
//! so that the log neither delays nor fails a request. A crash loses what is buffered.

pub mod api;
mod buffer;
mod store;

use std::{future::pending, sync::Arc};

pub use self::buffer::RequestBuffer;
use self::store::{ApiRequest, NewRequest};
use crate::state::prelude::*;
use tollhouse_http::{CompletedRequest, RequestRecorder};
use tollhouse_platform::{random::id_lower_bound, telemetry::metric::Counter};

const FLUSH_INTERVAL: Duration = Duration::from_secs(1);
const DAY_SECONDS: i64 = 24 * 3_600;

/// Returns the recorder of API requests, and the buffer that it fills. `dropped` counts the requests
/// that are not recorded.
pub fn recorder(dropped: &Counter) -> (RequestRecorder, RequestBuffer) {
    let buffer = RequestBuffer::new(dropped.clone());
    let filled = buffer.clone();
    (Arc::new(move |request| filled.push(request)), buffer)
}

/// Saves the buffer once a second, until the server stops.
pub async fn run(app: App) {
    if app.settings.api_log_days == 0 {
        return pending().await;
    }
    let mut is_failing = false;
    loop {
        tokio::time::sleep(FLUSH_INTERVAL).await;
        let host = app.clone();
        // A task of its own: shutdown ends this loop, but waits for the task.
        let flushed = app.tasks.spawn(async move { flush(&host).await }).await;
        let failure = flushed.map_err(Error::internal).and_then(|saved| saved).err();
        if let Some(error) = failure.as_ref().filter(|_| !is_failing) {
            tracing::error!(error = %error.chain(), "API requests could not be recorded");
        }
        is_failing = failure.is_some();
    }
}

/// Saves the buffered requests and returns their number. After a failure they are lost.
pub async fn flush(app: &App) -> Result<usize> {
    let buffer = app.slot::<RequestBuffer>();
    let (first, requests) = buffer.take();
    if requests.is_empty() {
        return Ok(0);
    }
    let keep_until = app.clock.now().plus_seconds(DAY_SECONDS * app.settings.api_log_days);
    let rows = (first..).zip(requests).map(|(number, request)| NewRequest {
        company_id: request.company_id.clone(),
        keep_until,
        request: to_record(entry_id(app, number, request.began_at), request),
    });
    let rows: Arc<[NewRequest]> = rows.collect();
    let count = rows.len();
    let saved = app.store.write(async move |tx| store::insert(tx, &rows).await).await;
    if saved.is_err() {
        buffer.count_dropped(count);
    }
    Ok(saved.map(|()| count)?)
}

/// Returns an id that sorts by time and, within a millisecond, by the order of completion: seconds,
/// milliseconds and a number, then 32 random bits.
fn entry_id(app: &App, number: usize, at: Timestamp) -> String {
    let (ms, number) = (at.0.rem_euclid(1_000), number % (1 << 20));
    let random = hex::encode(app.random.bytes::<4>());
    format!("{}{ms:03x}{number:05x}{random}", id_lower_bound(at))
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
