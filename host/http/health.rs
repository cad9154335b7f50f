//! Whether this host lives and can work; and, in development, its clock.

use axum::extract::State;
use serde_json::json;

use crate::{
    app::App,
    error::{Error, Result},
    http::{answer::Answer, body::Fields},
    jobs,
};

const MOST_SECONDS: i64 = 10 * 366 * 86_400;

pub async fn live() -> Answer {
    Answer::message("alive")
}

pub async fn ready(State(app): State<App>) -> Result<Answer> {
    match app.store.select(async |tx| tx.sql("SELECT 1").one::<(i32,)>().await).await {
        Ok(_) => Ok(Answer::message("ready")),
        Err(error) => {
            tracing::error!(%error, "the database does not answer");
            Err(Error::Unavailable("the database does not answer"))
        }
    }
}

/// Development only: answers after all that became due, and what that caused, has run.
pub async fn advance_clock(State(app): State<App>, body: Fields) -> Result<Answer> {
    if !app.settings.development {
        return Err(Error::Forbidden("the clock moves in development mode only".to_owned()));
    }
    let seconds = body.integer("seconds", 0, MOST_SECONDS)?;
    let seconds = seconds.ok_or_else(|| body.required("seconds"))?;
    jobs::advance(&app, seconds).await?;
    Answer::data(json!({ "now": app.clock.now() }), "Clock advanced successfully")
}
