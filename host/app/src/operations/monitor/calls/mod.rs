//! The log of plugin calls: which calls were made about a charge, and how the plugins of all hosts
//! performed by hour. It omits arguments, results and texts, which may contain personal data.
//!
//! Each ended call is added to a buffer, which a background task saves.

mod store;

use std::sync::Arc;

use self::store::{CallHours, NewCall};
pub use self::store::{LoggedCallRow, list_of_references};
use crate::state::{logs, prelude::*};
use tollhouse_platform::{
    background::log_buffer::{LogBuffer, entry_id},
    telemetry::metric::Counter,
};
use tollhouse_plugins::{CallLog, LoggedCall};

const HOUR_MS: i64 = 3_600_000;

/// Returns the log of calls, and the buffer that it fills. `dropped` counts calls that are not
/// saved.
pub fn log(dropped: &Counter) -> (CallLog, LogBuffer<LoggedCall>) {
    let buffer = LogBuffer::new(dropped);
    let filled = buffer.clone();
    (Arc::new(move |call| filled.push(call)), buffer)
}

/// Saves the buffered calls and returns their number.
pub async fn flush(app: &App) -> Result<usize> {
    let buffer = app.slot::<LogBuffer<LoggedCall>>();
    let keep_until = logs::keep_until(app, app.settings.call_log_days);
    let to_row = |number, call: LoggedCall| NewCall {
        id: entry_id(&app.random, number, call.began_at),
        keep_until,
        call,
    };
    let insert = async |tx: &mut Tx, calls: Arc<[NewCall]>| store::insert(tx, &calls).await;
    logs::save_buffered(app, buffer, to_row, insert).await
}

/// Deletes expired calls and returns their number.
pub async fn sweep(app: App) -> Result<u64> {
    let now = app.clock.now();
    let oldest = now.plus_seconds(-24 * 3_600 * app.settings.call_log_days);
    // A host that logs nothing keeps the counts of others.
    if app.settings.call_log_days > 0 {
        app.store.write(async move |tx| store::sweep_hours(tx, oldest).await).await?;
    }
    let sweep = async move |tx: &mut Tx, most| store::sweep(tx, now, most).await;
    Ok(app.store.write_in_batches(sweep).await?)
}

fields! {
    /// Plugin and period of call counts.
    Query CallFilter {
        /// Name of a plugin. Default: all.
        plugin: Exactly,
        /// Number of hours, of which the last one is the current hour; more than 168 count as 168.
        hours: Limit<24, 168>,
    }
}

/// Plugin call counts of a period.
#[derive(Serialize, JsonSchema)]
pub struct PluginCallHours {
    /// Start of the first hour.
    from: Timestamp,
    /// Counts by hour, plugin and version, without hours in which a version was not called.
    hours: Vec<CallHours>,
}

/// Returns the counts of plugin calls of all hosts by hour.
pub async fn by_hour(
    State(app): State<App>,
    query: Query<CallFilter>,
) -> Result<DataResponse<PluginCallHours>> {
    let filter = query.read()?;
    let current = app.clock.now().0.div_euclid(HOUR_MS);
    let from = Timestamp((current - filter.hours + 1) * HOUR_MS);
    let read = async |tx: &mut Tx| store::by_hour(tx, from, filter.plugin.as_deref()).await;
    let hours = app.store.select(read).await?;
    DataResponse::data(PluginCallHours { from, hours }, "Plugin calls fetched successfully")
}
