//! Reading streams.

use schemars::JsonSchema;
use serde::Serialize;

use super::{
    Stream, next,
    store::{self, Entry},
    unsettled,
};
use crate::{
    app::App,
    error::Result,
    http::{
        fields::fields,
        query::{Cursor, Exactly, Limit, Query},
    },
};

fields! {
    /// Which part of the stream.
    Query Reading {
        /// The `next` of the answer before; without it, from the first entry on.
        after: Cursor,
        /// Entries about this company only, by its id.
        company: Exactly,
        /// How many at most; more than 1,000 counts as 1,000.
        limit: Limit<100, 1_000>,
    }
}

/// A part of a stream.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "StreamPart")]
pub struct Part {
    /// Oldest first.
    entries: Vec<Entry>,
    /// Where to go on from, also when there was nothing.
    next: String,
}

pub async fn read(app: &App, stream: Stream, query: &Query<Reading>) -> Result<Part> {
    let (after, company, limit) = (query.after()?, query.company()?, query.limit()?);
    let before = unsettled(app);
    let between = [&*after, &*before];
    let entries = app
        .store
        .select(async |tx| store::read(tx, stream.0, between, company.as_ref(), limit).await)
        .await?;
    let next = next(entries.iter().map(|entry| &*entry.id), limit, between);
    Ok(Part { entries, next })
}
