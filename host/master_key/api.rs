//! Exchanging the master key, for operators.

use axum::extract::State;
use serde_json::json;

use super::{Cursor, Damaged, Resealed, Standing, Step, reseal, standing};
use crate::{
    app::App,
    audit,
    error::Result,
    http::{
        answer::Answer,
        body::Body,
        fields::{Visible, fields},
    },
};

/// What is sealed under which key.
pub async fn fetch(State(app): State<App>) -> Result<Answer<Standing>> {
    Answer::data(standing(&app).await?, "Master key fetched successfully")
}

fields! {
    /// From where rows are sealed anew.
    Body NextRows {
        /// That of the answer to the step before; if it is left out, a walk begins.
        cursor: Option<Visible<1000>>,
    }
}

/// Seals anew what is under former keys, or in a former context, among the next rows; to be sent again, with the cursor of its
/// answer, until it is done.
pub async fn rotate(State(app): State<App>, body: Body<NextRows>) -> Result<Answer<Resealed>> {
    let cursor = read(&app, &body)?;
    let (host, db) = (app.clone(), app.store.clone());
    let step = db.write(async move |tx| -> Result<Step> {
        let step = reseal(&host, tx, cursor).await?;
        // Steps that change nothing would fill the log: most of a walk that is repeated.
        if step.cursor.is_none() || step.resealed > 0 {
            let key = host.sealer.key_id();
            let detail =
                json!({ "key": key, "resealed": step.resealed, "unreadable": step.damaged.len() });
            audit::record(tx, &host, audit::SERVICE, "master_key.rotate", detail).await?;
        }
        Ok(step)
    });
    let Step { resealed, damaged, cursor } = step.await?;
    for Damaged { column, company_id, error } in &damaged {
        // Not the row's id: see `Cursor::seal`.
        tracing::error!(column, company = company_id, %error, "not sealed anew");
    }
    let done = cursor.is_none();
    let cursor = cursor.map(|cursor| cursor.seal(&app)).transpose()?;
    let answer = Resealed { resealed, unreadable: damaged.len(), cursor, done };
    Answer::data(answer, "Sealed anew successfully")
}

fn read(app: &App, body: &Body<NextRows>) -> Result<Option<Cursor>> {
    let Some(sealed) = body.cursor()? else { return Ok(None) };
    let cursor = Cursor::open(app, &sealed);
    cursor.map(Some).ok_or_else(|| body.must_be("cursor", "that of the answer before"))
}
