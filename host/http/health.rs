//! Whether this host lives and can work; and, in development, its clock.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use axum::extract::State;
use schemars::JsonSchema;
use serde::Serialize;
use tokio::{sync::Mutex, time::timeout};

use super::{
    answer::{Answer, Done},
    body::Body,
    fields::{Whole, fields},
};
use crate::{
    app::{App, SWEEPS},
    clock::Timestamp,
    error::{Error, Result},
    jobs,
};

const MOST_SECONDS: i64 = 10 * 366 * 86_400;

/// For how long one look at the database answers everybody who asks: nobody needs a key for that.
const FRESH: Duration = Duration::from_secs(1);

/// What a database that works takes a fraction of, and less than a balancer waits for an answer.
const PATIENCE: Duration = Duration::from_secs(2);

/// The last look at the database, shared by all who ask.
#[derive(Clone, Default)]
pub struct Readiness(Arc<Mutex<Option<Look>>>);

#[derive(Clone, Copy)]
struct Look {
    at: Duration,
    is_well: bool,
}

pub async fn live() -> Done {
    Done("alive")
}

pub async fn ready(State(app): State<App>) -> Result<Done> {
    if app.stopping.load(Ordering::Relaxed) {
        return Err(Error::Unavailable("the host is about to stop"));
    }
    match is_well(&app).await? {
        true if !app.workers.enabled => Ok(Done("ready, without jobs")),
        true => Ok(Done("ready")),
        false => Err(Error::Unavailable("the database does not answer")),
    }
}

/// Whether the database works, by a look that is a second old at most.
async fn is_well(app: &App) -> Result<bool> {
    let mut last = app.readiness.0.clone().lock_owned().await;
    if let Some(look) = *last
        && app.clock.elapsed().saturating_sub(look.at) < FRESH
    {
        return Ok(look.is_well);
    }
    // To its end, whoever hangs up meanwhile: otherwise those who do could begin one look after the other.
    let host = app.clone();
    let look = app.tasks.spawn(async move {
        let is_well = look(&host).await;
        *last = Some(Look { at: host.clock.elapsed(), is_well });
        is_well
    });
    look.await.map_err(Error::internal)
}

/// Never longer than [`PATIENCE`].
async fn look(app: &App) -> bool {
    let why = match timeout(PATIENCE, app.store.probe()).await {
        Ok(Ok(())) => return true,
        Ok(Err(error)) => error.to_string(),
        Err(_) => format!("it was not done within {} ms", PATIENCE.as_millis()),
    };
    tracing::error!(error = why, "the database does not answer");
    false
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
    for sweep in SWEEPS {
        sweep(app.clone()).await?;
    }
    Answer::data(Now { now: app.clock.now() }, "Clock advanced successfully")
}
