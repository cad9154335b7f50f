//! Operator API for master key rotation.

use super::{Cursor, Damaged, MasterKeyUsage, Resealed, Step, count_by_key, reseal};
use crate::{
    operations::audit::{self, Actor},
    state::prelude::*,
};

/// Returns the number of sealed rows by column and key.
pub async fn fetch(State(app): State<App>) -> Result<DataResponse<MasterKeyUsage>> {
    DataResponse::data(count_by_key(&app).await?, "Master key fetched successfully")
}

fields! {
    /// Position in a master key rotation.
    Body NextRows(body, app: &App) {
        /// `cursor` of the previous response; omitted to start a rotation.
        cursor: Option<Visible<1000>> as Option<Cursor> => match cursor {
            None => Ok(None),
            Some(sealed) => Cursor::open(app, &sealed).map(Some).ok_or_else(|| {
                body.must_be("cursor", "the cursor of the previous response")
            }),
        },
    }
}

/// Reseals those of the next rows that are sealed under a previous key or in a former context.
/// Clients repeat the request with the returned cursor until `done` is `true`.
pub async fn rotate(
    State(app): State<App>,
    actor: Actor,
    body: Body<NextRows>,
) -> Result<DataResponse<Resealed>> {
    let NextRows { cursor } = NextRows::read(&body, &app)?;
    let (host, db) = (app.clone(), app.store.clone());
    let step = db.write(async move |tx| -> Result<Step> {
        let step = reseal(&host, tx, cursor).await?;
        // Only steps with changes are recorded: a repeated rotation would fill the audit log.
        if step.cursor.is_none() || step.resealed > 0 {
            let key = host.sealer.key_id();
            let detail =
                json!({ "key": key, "resealed": step.resealed, "unreadable": step.damaged.len() });
            audit::record(tx, &host, &actor, Owner::Service, "master_key.rotate", detail).await?;
        }
        Ok(step)
    });
    let Step { resealed, damaged, cursor } = step.await?;
    for Damaged { column, company_id, error } in &damaged {
        // Without the row's id: see `Cursor::seal`.
        tracing::error!(column, company = company_id, %error, "value could not be resealed");
    }
    let done = cursor.is_none();
    let cursor = cursor.map(|cursor| cursor.seal(&app)).transpose()?;
    let result = Resealed { resealed, unreadable: damaged.len(), cursor, done };
    DataResponse::data(result, "Values resealed successfully")
}
