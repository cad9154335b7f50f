//! API of identity lookups, as specified.

pub mod operators;

use axum::extract::State;
use schemars::JsonSchema;
use serde::Serialize;

use super::{
    FEATURE, Record, Uid, View,
    catalog::{self, Identity, LookupMethod},
    lookup::{self, LookupRequest, LookupSubject},
    store, verification,
};
use crate::{
    customers as users,
    messaging::otp,
    state::App,
    tenants::companies::{AuthenticatedCompany, Company},
};
use tollhouse_http::{
    GetOnly, IdempotentRequest,
    request::{
        body::Body,
        fields::{Flag, Prose, Text, fields},
        path::Path,
    },
    response::{DataResponse, MessageResponse},
};
use tollhouse_platform::{
    error::{Error, Result},
    store::Tx,
};

/// Maximum length of an identifier in characters.
const MAX_IDENTIFIER_CHARACTERS: usize = 100;
/// Maximum length of a base64 image in characters, which is all that fits into a body.
const MOST_IMAGE: usize = 8 << 20;

fields! {
    /// Fields of an identity lookup besides the identifier.
    Body Lookup {
        /// `user_id` or internal id of the user to whom the record belongs.
        user_id: Option<Text<100>>,
        /// `true` sends a code to the e-mail address and phone number on record.
        send_otp: Option<Flag>,
        /// Selfie or document, if needed: public https URL of a JPEG or PNG of at most 5 MiB, or
        /// the image in base64, within the size limit of a body.
        image: Option<Prose<MOST_IMAGE>>,
    }
}

/// Result of an identity lookup.
#[derive(Serialize, JsonSchema)]
pub struct LookupResult {
    #[serde(flatten)]
    uid: View,
    /// `true` if a code was sent.
    otp_sent: bool,
    /// Reason why the requested code was not sent.
    otp_error: Option<String>,
}

/// Runs a lookup that a country plugin defines; 404 if there is none at this path.
pub async fn look_up(
    State(app): State<App>,
    AuthenticatedCompany(company): AuthenticatedCompany,
    run: IdempotentRequest,
    Path((country, path)): Path<(String, String)>,
    body: Body<Lookup>,
) -> Result<DataResponse<LookupResult>> {
    company.check_feature(FEATURE)?;
    app.plugins.must_be_ready(&country)?;
    let found = catalog::find_by_path(&app.plugins, &company.id, &country, &path);
    let (identity, way) = found.ok_or_else(|| Error::not_found("path not found"))?;
    let order = LookupRequest {
        subject: read_subject(&identity, way, &body)?,
        identity: identity.clone(),
        user_id: body.user_id()?,
        send_otp: body.send_otp()?.unwrap_or(false),
        run: run.name("uid"),
    };
    let found = lookup::look_up(&app, &company, order).await?;
    let message = format!("{} lookup successful", identity.identity_type().display_name);
    if let Some(Err(error)) = &found.code_sent {
        tracing::warn!(error = %error.chain(), "verification code of an identity record could not be sent");
    }
    let expires_at = found.uid.expires_at;
    let data = LookupResult {
        uid: found.uid.view(found.record, Some(&identity)),
        otp_sent: matches!(found.code_sent, Some(Ok(()))),
        otp_error: found.code_sent.and_then(Result::err).map(|error| error.to_string()),
    };
    Ok(DataResponse::data(data, &message)?.replay_until(expires_at))
}

fn read_subject(
    identity: &Identity,
    way: LookupMethod,
    body: &Body<Lookup>,
) -> Result<LookupSubject<String>> {
    let image = || body.image()?.ok_or_else(|| body.required("image"));
    Ok(match way {
        LookupMethod::Number => {
            LookupSubject::Number { identifier: read_identifier(identity, body)? }
        }
        LookupMethod::Face => {
            LookupSubject::Face { identifier: read_identifier(identity, body)?, selfie: image()? }
        }
        LookupMethod::Document => LookupSubject::Document { document: image()? },
    })
}

fn read_identifier(identity: &Identity, body: &Body<Lookup>) -> Result<String> {
    let kind = identity.identity_type();
    let written = body.required_text(&kind.field, MAX_IDENTIFIER_CHARACTERS)?;
    let identifier = kind.identifier(&written);
    identifier.ok_or_else(|| Error::invalid(format!("the {} field {}", kind.field, kind.rule)))
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
        let token = body.token()?;
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
