//! Feeds for operators and internal consumers, written with the reported change, read by cursor.
//!
//! Ids have a resolution of one second, and entries may be committed out of order. Readers miss
//! none because only entries below the visibility horizon are returned.

mod api;
mod store;

use std::time::Duration;

use serde_json::Value;

pub use self::api::{FeedPage, Reading, read};
use crate::state::App;
use tollhouse_platform::{
    random::id_lower_bound,
    store::{Result, Tx},
    values::id::CompanyId,
};

/// Name of a feed.
#[derive(Clone, Copy, Debug)]
pub struct Feed(pub &'static str);

/// Maximum difference between the clocks of hosts.
const MAX_CLOCK_SKEW: Duration = Duration::from_secs(10);

/// Writes an entry about a company.
pub async fn write(
    tx: &mut Tx,
    app: &App,
    stream: Feed,
    company_id: &CompanyId,
    data: Value,
) -> Result<()> {
    let now = app.clock.now();
    store::insert(tx, stream.0, company_id, &app.random.id(now), data, now).await
}

/// Returns the visibility horizon: the lowest id that may still be committed.
#[must_use]
pub fn visibility_horizon(app: &App) -> String {
    let longest = app.store.max_transaction_time() + MAX_CLOCK_SKEW;
    let ms = i64::try_from(longest.as_millis()).unwrap_or(i64::MAX);
    id_lower_bound(app.clock.now().plus_ms(-ms))
}

/// Returns the cursor after a page of `ids`. If there are fewer than `limit`, it is the end of the
/// range, which was read completely. It never decreases, even if this host's clock is behind.
#[must_use]
pub fn next_cursor<'i>(
    mut ids: impl ExactSizeIterator<Item = &'i str> + DoubleEndedIterator,
    limit: i64,
    [after, before]: [&str; 2],
) -> String {
    let is_full = i64::try_from(ids.len()).is_ok_and(|read| read == limit);
    let last = ids.next_back().filter(|_| is_full);
    last.unwrap_or_else(|| after.max(before)).to_owned()
}
