//! Reading of feeds.

use schemars::JsonSchema;
use serde::Serialize;

use super::{
    Feed, next_cursor,
    store::{self, FeedEntry},
    visibility_horizon,
};
use crate::state::App;
use tollhouse_http::request::{
    fields::fields,
    query::{Cursor, Exactly, Limit, Query},
};
use tollhouse_platform::error::Result;

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

pub async fn read(app: &App, stream: Feed, query: &Query<Reading>) -> Result<FeedPage> {
    let (after, company, limit) = (query.after()?, query.company()?, query.limit()?);
    let before = visibility_horizon(app);
    let between = [&*after, &*before];
    let entries = app
        .store
        .select(async |tx| store::read(tx, stream.0, between, company.as_ref(), limit).await)
        .await?;
    let next = next_cursor(entries.iter().map(|entry| &*entry.id), limit, between);
    Ok(FeedPage { entries, next })
}
