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
    store::{DynamicStatement, Record, Result, Tx},
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

/// An entry that can be read by cursor.
pub trait Identified {
    fn id(&self) -> &str;
}

/// The requested part of a feed.
pub struct Range {
    pub after: String,
    pub limit: i64,
}

/// Reads entries after a cursor and below the visibility horizon, oldest first. `select` ends with
/// ` WHERE id > `; `filter` adds conditions. Returns the entries and the cursor of the next request.
pub async fn page<E: Record + Identified>(
    app: &App,
    Range { after, limit }: Range,
    select: &'static str,
    filter: impl FnOnce(DynamicStatement) -> DynamicStatement,
) -> Result<(Vec<E>, String)> {
    let before = visibility_horizon(app);
    let sql = DynamicStatement::from(select).bind(&after).append(" AND id < ").bind(&before);
    let sql = filter(sql).append(" ORDER BY id LIMIT ").bind(limit);
    let entries: Vec<E> = app.store.select(async |tx| tx.dynamic(&sql).all().await).await?;
    // Fewer entries than the limit: the range was read completely. The cursor never decreases,
    // even if this host's clock is behind.
    let is_full = i64::try_from(entries.len()).is_ok_and(|read| read == limit);
    let next = match entries.last() {
        Some(last) if is_full => last.id().to_owned(),
        _ => after.max(before),
    };
    Ok((entries, next))
}

/// Returns the visibility horizon: the lowest id that may still be committed.
fn visibility_horizon(app: &App) -> String {
    let longest = app.store.max_transaction_time() + MAX_CLOCK_SKEW;
    let ms = i64::try_from(longest.as_millis()).unwrap_or(i64::MAX);
    id_lower_bound(app.clock.now().plus_ms(-ms))
}
