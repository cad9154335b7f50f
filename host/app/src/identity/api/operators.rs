//! Operator API for identity types and their switches.

use super::{
    super::{View, catalog, store},
    show_records,
};
use crate::{customers as users, tenants::prelude::*};

/// Period over which the users whose records an operator reads are counted.
const READS_SECONDS: i64 = 24 * 3600;

/// Lists the identity records of a user. Reading those of many users may need an approval, which
/// covers further reads until it expires. Members of the company need none.
pub async fn list_of_user(
    State(app): State<App>,
    actor: Actor,
    AuthenticatedCompany(company): AuthenticatedCompany,
    RecordId(user_id): RecordId<String>,
) -> Result<DataResponse<Vec<View>>> {
    let subject = ApprovalSubject::Identities;
    if approvals::are_required(&app, subject) && actor.member_of.is_none() {
        let most = app.settings.approvals.approval_identities;
        if count_read(&app, &actor, &company.id, &user_id).await? > i64::from(most) {
            let (action, detail) = ("identity.bulk_read", json!({ "users_in_24_hours": most }));
            approvals::require(&app, &actor, subject, Owner::Service, action, &detail).await?;
        }
    }
    show_records(&app, &company, &user_id).await
}

/// Records that an operator reads the records of a user. Returns the number of users whose records
/// the operator has read in the last 24 hours.
async fn count_read(app: &App, actor: &Actor, company: &CompanyId, user_id: &str) -> Result<i64> {
    let (db, now) = (app.store.clone(), app.clock.now());
    let (operator, company, user_id) = (actor.id.clone(), company.clone(), user_id.to_owned());
    db.write(async move |tx| {
        let user = users::get_by_email_or_id(tx, &company, &user_id).await?;
        store::forget_reads(tx, &operator, now.plus_seconds(-READS_SECONDS)).await?;
        store::record_read(tx, &operator, &company, &user.id, now).await?;
        Ok(store::count_reads(tx, &operator).await?)
    })
    .await
}

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

/// Lists all types; those that the owner can use are active.
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
