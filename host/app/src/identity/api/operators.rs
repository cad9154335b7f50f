//! Operator API for identity types and their switches.

use super::super::{catalog, store};
use crate::tenants::prelude::*;

pub async fn list(State(app): State<App>) -> Result<DataResponse<Vec<catalog::View>>> {
    all(&app, &Owner::Service).await
}

pub async fn list_for_company(
    State(app): State<App>,
    Path(company): Path<CompanyId>,
) -> Result<DataResponse<Vec<catalog::View>>> {
    companies::find(&app, &company).await?;
    all(&app, &company.into()).await
}

/// Lists all types, with those active that the company can use.
pub async fn all(app: &App, owner: &Owner) -> Result<DataResponse<Vec<catalog::View>>> {
    let off = app.store.select(async |tx| store::list_disabled(tx, owner).await).await?;
    let view = |identity: catalog::Identity| identity.view(!off.contains(&identity.name()));
    let views = catalog::all(&app.plugins).into_iter().map(view).collect();
    DataResponse::data(views, "Identities fetched successfully")
}

fields! {
    /// Switch of an identity type.
    Body IdentitySwitch {
        /// `false` disables lookups of this type.
        active: Flag,
    }
}

pub async fn switch(
    State(app): State<App>,
    actor: Actor,
    Path((country, identity)): Path<(String, String)>,
    body: Body<IdentitySwitch>,
) -> Result<DataResponse<catalog::View>> {
    set_active(app, actor, Owner::Service, format!("{country}.{identity}"), body).await
}

pub async fn switch_for_company(
    State(app): State<App>,
    actor: Actor,
    Path((company, country, identity)): Path<(CompanyId, String, String)>,
    body: Body<IdentitySwitch>,
) -> Result<DataResponse<catalog::View>> {
    companies::find(&app, &company).await?;
    set_active(app, actor, company.into(), format!("{country}.{identity}"), body).await
}

/// Sets a switch and returns the effective state: disabled for all companies takes precedence.
async fn set_active(
    app: App,
    actor: Actor,
    owner: Owner,
    identity: String,
    body: Body<IdentitySwitch>,
) -> Result<DataResponse<catalog::View>> {
    let known = catalog::find_by_name(&app.plugins, &identity)?;
    let known = known.ok_or_else(|| Error::not_found("identity type not found"))?;
    let active = body.read()?.active;
    let (db, host) = (app.store.clone(), app.clone());
    db.write(async move |tx| {
        store::set_active(tx, &owner, &identity, active, host.clock.now()).await?;
        let off = store::list_disabled(tx, &owner).await?.contains(&identity);
        let detail = json!({ "identity": identity, "active": active });
        audit::record(tx, &host, &actor, owner, "identity.switch", detail).await?;
        DataResponse::data(known.view(!off), "Identity updated successfully")
    })
    .await
}
