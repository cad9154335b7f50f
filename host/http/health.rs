//! Whether this host lives and can work; and, in development, its clock.

use std::sync::atomic::Ordering;

use axum::extract::State;
use schemars::JsonSchema;
use serde::Serialize;

use super::{
    answer::{Answer, Done},
    body::Body,
    fields::{Whole, fields},
};
use crate::{
    app::App,
    clock::Timestamp,
    error::{Error, Result},
    jobs,
};

const MOST_SECONDS: i64 = 10 * 366 * 86_400;

pub async fn live() -> Done {
    Done("alive")
}

pub async fn ready(State(app): State<App>) -> Result<Done> {
    if app.stopping.load(Ordering::Relaxed) {
        return Err(Error::Unavailable("the host is about to stop"));
    }
    match app.store.select(async |tx| tx.sql("SELECT 1").one::<(i32,)>().await).await {
        Ok(_) => Ok(Done("ready")),
        Err(error) => {
            tracing::error!(%error, "the database does not answer");
            Err(Error::Unavailable("the database does not answer"))
        }
    }
}

fields! {
    /// How far the clock moves.
    Body Advance {
        seconds: Whole<0, MOST_SECONDS>,
    }
}

#[derive(Serialize, JsonSchema)]
pub struct Now {
    now: Timestamp,
}

/// Development only: answers after all that became due, and what that caused, has run.
pub async fn advance_clock(State(app): State<App>, body: Body<Advance>) -> Result<Answer<Now>> {
    if !app.settings.development {
        return Err(Error::Forbidden("the clock moves in development mode only".to_owned()));
    }
    jobs::advance(&app, body.seconds()?).await?;
    Answer::data(Now { now: app.clock.now() }, "Clock advanced successfully")
}
