//! API of identity lookups, as specified.

mod lookup;
pub mod operators;

pub use self::lookup::{Lookup, look_up};
use super::{Record, Uid, View, catalog, store, verification};
use crate::{customers as users, messaging::otp, tenants::prelude::*};

pub async fn list(
    State(app): State<App>,
    AuthenticatedCompany(company): AuthenticatedCompany,
    RecordId(user_id): RecordId<String>,
) -> Result<DataResponse<Vec<View>>> {
    show_records(&app, &company, &user_id).await
}

/// Returns the identity records of a user.
async fn show_records(
    app: &App,
    company: &Company,
    user_id: &str,
) -> Result<DataResponse<Vec<View>>> {
    let read = async |tx: &mut Tx| -> Result<_> {
        let user = users::get_by_email_or_id(tx, &company.id, user_id).await?;
        Ok(store::list_for_user(tx, &company.id, &user.id, app.clock.now()).await?)
    };
    let uids = app.store.read(read).await?;
    let identities = catalog::all(&app.plugins);
    let view = |uid: Uid| {
        let record = Record::open_or_log(app, &uid)?;
        let identity = identities.iter().find(|identity| identity.name() == uid.identity);
        Some(uid.view(record, identity))
    };
    DataResponse::data(uids.into_iter().filter_map(view).collect(), "Uids fetched successfully")
}

pub async fn identities(
    State(app): State<App>,
    AuthenticatedCompany(company): AuthenticatedCompany,
) -> Result<DataResponse<Vec<catalog::View>>> {
    operators::all(&app, &company.id.into()).await
}

fn unknown_lookup() -> Error {
    Error::not_found("uid not found")
}

pub async fn send(
    State(app): State<App>,
    _: GetOnly,
    AuthenticatedCompany(company): AuthenticatedCompany,
    Path(uid_id): Path<String>,
) -> Result<MessageResponse> {
    let now = app.clock.now();
    let uid = app.store.select(async |tx| store::find(tx, &company.id, &uid_id, now).await).await?;
    let uid = uid.ok_or_else(unknown_lookup)?;
    let record = Record::open(&app, &uid)?;
    verification::check_verifiable_by_code(&app, &uid, &record)?;
    verification::send(&app, &company, &uid, &record, None).await?;
    Ok(MessageResponse("Verification token sent successfully"))
}

fields! {
    /// A verification code.
    Body UidToken {
        /// Code as entered by the person.
        token: ComparedText,
    }
}

pub async fn verify(
    State(app): State<App>,
    AuthenticatedCompany(company): AuthenticatedCompany,
    run: IdempotentRequest,
    Path(uid_id): Path<String>,
    body: Body<UidToken>,
) -> Result<MessageResponse> {
    let (db, host, run) = (app.store.clone(), app.clone(), run.name("uid"));
    let checked = async move |tx: &mut Tx| {
        let uid = store::lock(tx, &company.id, &uid_id, host.clock.now()).await?;
        let uid = uid.ok_or_else(unknown_lookup)?;
        let token = body.read()?.token;
        verification::verify(tx, &host, uid, &token, run.as_deref()).await
    };
    let checked = db.write(checked).await;
    let tried = checked.is_ok();
    otp::finish_check(&app, checked).map_err(|error| match error {
        // The specification has one message for all codes that are not accepted.
        Error::Invalid(_) if tried => Error::invalid("invalid token"),
        error => error,
    })?;
    Ok(MessageResponse("Uid verified successfully"))
}
