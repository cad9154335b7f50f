//! Verifying an identity record by a code.

use crate::{
    identity::{Record, store, verification},
    messaging::otp,
    state::prelude::*,
    tenants::companies::AuthenticatedCompany,
};

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
        token: Text<255>,
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
