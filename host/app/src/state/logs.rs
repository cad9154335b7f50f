//! Logs whose entries are buffered, and saved in the background.

use std::sync::Arc;

use super::prelude::*;
use tollhouse_platform::{
    background::log_buffer::{LogBuffer, LogEntry},
    store,
};

/// Saves the entries of a log, and returns their number.
pub type Flush = fn(App) -> BoxFuture<'static, Result<usize>>;

/// Saves a log by `flush` once a second, until the server stops.
pub async fn save_repeatedly<T: LogEntry>(app: App, buffer: LogBuffer<T>, flush: Flush) {
    let mut is_failing = false;
    loop {
        buffer.wait().await;
        // A task of its own: shutdown ends this loop, but waits for the task.
        let flushed = app.tasks.spawn(flush(app.clone())).await;
        let failure = flushed.map_err(Error::internal).and_then(|saved| saved).err();
        if let Some(error) = failure.as_ref().filter(|_| !is_failing) {
            tracing::error!(error = %error.chain(), "entries of a log could not be saved");
        }
        is_failing = failure.is_some();
    }
}

/// Saves the buffered entries by `insert`, and returns their number. `to_row` gets the number of
/// each entry. After a failure the entries are lost.
pub async fn save_buffered<T: LogEntry, R: Send + Sync + 'static>(
    app: &App,
    buffer: &LogBuffer<T>,
    to_row: impl Fn(usize, T) -> R,
    insert: impl AsyncFnOnce(&mut Tx, Arc<[R]>) -> store::Result<()> + Clone + Send + 'static,
) -> Result<usize> {
    let (first, entries) = buffer.take();
    if entries.is_empty() {
        return Ok(0);
    }
    let rows: Arc<[R]> = (first..).zip(entries).map(|(n, entry)| to_row(n, entry)).collect();
    let count = rows.len();
    let saved = app.store.write(async move |tx| insert(tx, rows).await).await;
    if saved.is_err() {
        buffer.count_dropped(count);
    }
    Ok(saved.map(|()| count)?)
}

/// Returns the end of the retention of entries that are saved now.
pub fn keep_until(app: &App, days: i64) -> Timestamp {
    app.clock.now().plus_seconds(DAY_SECONDS * days)
}
