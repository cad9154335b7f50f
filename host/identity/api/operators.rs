//! The types of identity, and their switches, for operators.

use axum::extract::State;
use serde_json::json;

use super::super::{catalog, store};
use crate::{
    app::App,
    audit,
    error::{Error, Result},
    http::{
        answer::Answer,
        body::Body,
        fields::{Flag, fields},
        path::Path,
    },
};

pub async fn list(State(app): State<App>) -> Result<Answer<Vec<catalog::View>>> {
    let off = app.store.select(async |tx| store::switched_off(tx).await).await?;
    let view = |identity: catalog::Identity| {
        let active = !off.contains(&(identity.id(),));
        identity.view(active)
    };
    let views = catalog::all(&app.plugins).into_iter().map(view).collect();
    Answer::data(views, "Identities fetched successfully")
}

fields! {
    /// The switch of a type of identity.
    Body IdentityChange {
        /// `false`: nobody can look it up.
        active: Flag,
    }
}

pub async fn switch(
    State(app): State<App>,
    Path(identity): Path<String>,
    body: Body<IdentityChange>,
) -> Result<Answer<catalog::View>> {
    let known = catalog::by_id(&app.plugins, &identity);
    let known = known.ok_or_else(|| Error::not_found("identity not found"))?;
    let active = body.active()?;
    let (db, host) = (app.store.clone(), app.clone());
    db.write(async move |tx| {
        store::switch(tx, &identity, active, host.clock.now()).await?;
        let detail = json!({ "identity": identity, "active": active });
        audit::record(tx, &host, audit::SERVICE, "identity.switch", detail).await?;
        Answer::data(known.view(active), "Identity updated successfully")
    })
    .await
}
