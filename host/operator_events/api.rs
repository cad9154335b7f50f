//! Reading the stream of operator events.

use axum::extract::State;
use schemars::JsonSchema;
use serde::Serialize;

use super::store::{self, Event, Part};
use crate::{
    app::App,
    error::Result,
    http::{
        answer::Answer,
        fields::fields,
        query::{Cursor, Exactly, Limit, Query},
    },
    streams,
};

fields! {
    /// Which part of the stream.
    Query Reading {
        /// The `next` of the answer before; without it, from the first event on.
        after: Cursor,
        /// Events of this kind only.
        kind: Exactly,
        /// Events about this company only, by its id.
        company: Exactly,
        /// How many at most; more than 1,000 counts as 1,000.
        limit: Limit<100, 1_000>,
    }
}

/// A part of the stream.
#[derive(Serialize, JsonSchema)]
pub struct OperatorEvents {
    /// Oldest first.
    events: Vec<Event>,
    /// Where to go on from, also when there was nothing.
    next: String,
}

pub async fn read(State(app): State<App>, query: Query<Reading>) -> Result<Answer<OperatorEvents>> {
    let part = Part {
        after: query.after()?,
        kind: query.kind()?,
        company_id: query.company()?,
        limit: query.limit()?,
        before: streams::unsettled(&app),
    };
    let events = app.store.select(async |tx| store::read(tx, &part).await).await?;
    let ids = events.iter().map(|event| &*event.id);
    let next = streams::next(ids, part.limit, [&part.after, &part.before]);
    Answer::data(OperatorEvents { events, next }, "Events fetched successfully")
}
