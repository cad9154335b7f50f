//! Feeds for operators and internal consumers, written with the reported change, read by cursor.
//!
//! Ids have a resolution of one second, and entries may be committed out of order. Readers miss
//! none because only entries below the visibility horizon are returned.

mod store;

use self::store::FeedEntry;
pub use self::store::write;
use crate::state::prelude::*;
use tollhouse_platform::{
    random::id_lower_bound,
    store::{DynamicStatement, Record},
};

#[derive(Clone, Copy, Debug)]
pub struct Feed(pub &'static str);

/// Maximum difference between the clocks of hosts.
const MAX_CLOCK_SKEW: Duration = Duration::from_secs(10);

fields! {
    /// Range of a feed.
    Query Reading {
        /// `next` of the previous response; default: the first entry.
        after: Cursor,
        /// Id of a company, to return only its entries.
        company: Exactly,
        /// Maximum number of entries; more than 1,000 counts as 1,000.
        limit: Limit<100, 1_000>,
    }
}

/// A page of a feed.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "StreamPart")]
pub struct FeedPage {
    /// Oldest first.
    entries: Vec<FeedEntry>,
    /// Cursor of the next request, also if there are no entries.
    next: String,
}

pub async fn read(app: &App, feed: Feed, range: Reading) -> Result<FeedPage> {
    let Reading { after, company, limit } = range;
    let select = "SELECT id, company_id, data, created_at FROM streams WHERE id > ";
    let select = DynamicStatement::from(select).bind(&after).append(" AND stream = ").bind(feed.0);
    let select = select.append_if(" AND company_id = ", company.as_ref());
    let (entries, next) = page(app, select, after, limit, |e: &FeedEntry| &e.id).await?;
    Ok(FeedPage { entries, next })
}

/// Reads the entries of `select`, which are those after a cursor, below the visibility horizon,
/// oldest first. Returns the entries and the cursor of the next request.
pub async fn page<E: Record>(
    app: &App,
    select: DynamicStatement,
    after: String,
    limit: i64,
    id: fn(&E) -> &str,
) -> Result<(Vec<E>, String)> {
    let before = visibility_horizon(app);
    let sql = select.append(" AND id < ").bind(&before).append(" ORDER BY id LIMIT ").bind(limit);
    let entries: Vec<E> = app.store.select(async |tx| tx.dynamic(&sql).all().await).await?;
    // Fewer entries than the limit: the range was read completely. The cursor never decreases,
    // even if this host's clock is behind.
    let next = next_cursor(&entries, limit, id).unwrap_or_else(|| after.max(before));
    Ok((entries, next))
}

/// Returns the visibility horizon: the lowest id that may still be committed.
pub fn visibility_horizon(app: &App) -> String {
    let longest = app.store.max_transaction_time() + MAX_CLOCK_SKEW;
    let ms = i64::try_from(longest.as_millis()).unwrap_or(i64::MAX);
    id_lower_bound(app.clock.now().plus_ms(-ms))
}
