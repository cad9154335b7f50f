//! Streams that operators and neighbouring systems read by cursor. What is written is in the transaction of what it tells of.
//!
//! Ids tell seconds only, and transactions commit later than they began. So a reader gets an entry once nothing that is older can
//! still be committed, and whoever goes on from where it stopped misses none.

mod api;
mod store;

use std::time::Duration;

use serde_json::Value;

pub use self::api::{Part, Reading, read};
use crate::{
    app::App,
    random::first_id,
    store::{Result, Tx},
};

/// The name of a stream.
#[derive(Clone, Copy, Debug)]
pub struct Stream(pub &'static str);

/// By how much the clocks of hosts may differ.
const CLOCKS_DIFFER: Duration = Duration::from_secs(10);

/// Writes an entry about something that has happened to a company.
pub async fn write(
    tx: &mut Tx,
    app: &App,
    stream: Stream,
    company_id: &str,
    data: Value,
) -> Result<()> {
    let now = app.clock.now();
    store::insert(tx, stream.0, company_id, &app.random.id(now), data, now).await
}

/// The first id of those that may still be committed.
#[must_use]
pub fn unsettled(app: &App) -> String {
    let longest = app.store.longest_transaction() + CLOCKS_DIFFER;
    let ms = i64::try_from(longest.as_millis()).unwrap_or(i64::MAX);
    first_id(app.clock.now().plus_ms(-ms))
}

/// Where a reader goes on that has got `ids`, of at most `limit` after one and before another. After a part that is not full all that
/// was settled has been looked at, also what was not asked for. Never goes back, though the clock of this host may be behind that of
/// another.
#[must_use]
pub fn next<'i>(
    mut ids: impl ExactSizeIterator<Item = &'i str> + DoubleEndedIterator,
    limit: i64,
    [after, before]: [&str; 2],
) -> String {
    let is_full = i64::try_from(ids.len()).is_ok_and(|read| read == limit);
    let last = ids.next_back().filter(|_| is_full);
    last.unwrap_or_else(|| after.max(before)).to_owned()
}
