//! Exchanging the master key, for operators.

use axum::extract::State;
use serde_json::json;

use super::{Resealed, Standing, reseal, standing};
use crate::{app::App, audit, error::Result, http::answer::Answer};

/// What is sealed under which key.
pub async fn fetch(State(app): State<App>) -> Result<Answer<Standing>> {
    let standing = app.store.read(async |tx| standing(&app, tx).await).await?;
    Answer::data(standing, "Master key fetched successfully")
}

/// Seals some of what is under former keys anew; to be sent again until it is done.
pub async fn rotate(State(app): State<App>) -> Result<Answer<Resealed>> {
    let db = app.store.clone();
    db.write(async move |tx| {
        let done = reseal(&app, tx).await?;
        let key = app.sealer.key_id();
        let detail =
            json!({ "key": key, "resealed": done.resealed, "unreadable": done.unreadable });
        audit::record(tx, &app, audit::SERVICE, "master_key.rotate", detail).await?;
        Answer::data(done, "Sealed anew successfully")
    })
    .await
}
