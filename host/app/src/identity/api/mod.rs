//! API of identity lookups, as specified.

mod codes;
mod lookup;
pub mod operators;

pub use self::{
    codes::{send, verify},
    lookup::{Lookup, look_up},
};
use super::{Record, Uid, View, catalog, store};
use crate::{
    customers as users,
    state::prelude::*,
    tenants::companies::{AuthenticatedCompany, Company},
};

pub async fn list(
    State(app): State<App>,
    AuthenticatedCompany(company): AuthenticatedCompany,
    Path(user_id): Path<String>,
) -> Result<DataResponse<Vec<View>>> {
    let uids = app.store.read(async |tx| list_for_user(tx, &app, &company, &user_id).await).await?;
    let identities = catalog::all(&app.plugins);
    let view = |uid: Uid| {
        let record = Record::open_or_log(&app, &uid)?;
        let identity = identities.iter().find(|identity| identity.name() == uid.identity);
        Some(uid.view(record, identity))
    };
    DataResponse::data(uids.into_iter().filter_map(view).collect(), "Uids fetched successfully")
}

async fn list_for_user(
    tx: &mut Tx,
    app: &App,
    company: &Company,
    user_id: &str,
) -> Result<Vec<Uid>> {
    let user = users::find_by_email_or_id(tx, &company.id, user_id).await?;
    let user = user.ok_or_else(|| Error::not_found("user not found"))?;
    Ok(store::list_for_user(tx, &company.id, &user.id, app.clock.now()).await?)
}

pub async fn identities(
    State(app): State<App>,
    AuthenticatedCompany(company): AuthenticatedCompany,
) -> Result<DataResponse<Vec<catalog::View>>> {
    operators::all(&app, &company.id.into()).await
}
