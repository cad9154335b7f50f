//! Reading of feeds.

use super::{Feed, Range, page, store::FeedEntry};
use crate::state::prelude::*;
use tollhouse_platform::store::DynamicStatement;

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
    let of_feed = |sql: DynamicStatement| {
        let sql = sql.append(" AND stream = ").bind(feed.0);
        sql.append_if(" AND company_id = ", company.as_ref())
    };
    let (entries, next) = page(app, Range { after, limit }, select, of_feed).await?;
    Ok(FeedPage { entries, next })
}
