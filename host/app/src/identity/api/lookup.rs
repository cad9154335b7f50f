//! Looking up an identity.

use crate::{
    identity::{
        FEATURE, View,
        catalog::{self, Identity, LookupMethod},
        lookup::{self, LookupSubject},
    },
    tenants::prelude::*,
};

const MAX_IDENTIFIER_CHARACTERS: usize = 100;
/// Maximum length of a base64 image in characters: the maximum size of a body.
const MAX_IMAGE_BYTES: usize = 8 << 20;

fields! {
    /// Fields of an identity lookup besides the identifier.
    Body Lookup(body, identity: &Identity, method: LookupMethod) {
        /// `user_id` or internal id of the user to whom the record belongs.
        user_id: Option<Text<100>>,
        /// `true` sends a code to the e-mail address and phone number on record.
        send_otp: Option<Flag>,
        /// Selfie or document, if needed: public https URL of a JPEG or PNG of at most 5 MiB, or
        /// the image in base64, within the size limit of a body.
        subject as "image": Option<Prose<MAX_IMAGE_BYTES>> as LookupSubject<String>
            where method != LookupMethod::Number
            => read_subject(body, identity, method, subject),
    }
}

fn read_subject(
    body: &Fields,
    identity: &Identity,
    method: LookupMethod,
    image: Option<String>,
) -> Result<LookupSubject<String>> {
    let identifier = || read_identifier(identity, body);
    let image = || image.ok_or_else(|| body.required("image"));
    Ok(match method {
        LookupMethod::Number => LookupSubject::Number { identifier: identifier()? },
        LookupMethod::Face => LookupSubject::Face { identifier: identifier()?, selfie: image()? },
        LookupMethod::Document => LookupSubject::Document { document: image()? },
    })
}

fn read_identifier(identity: &Identity, body: &Fields) -> Result<String> {
    let kind = identity.identity_type();
    let written = body.field::<Text<MAX_IDENTIFIER_CHARACTERS>>(&kind.field)?;
    let identifier = kind.normalize_identifier(&written);
    identifier.ok_or_else(|| Error::invalid(format!("the {} field {}", kind.field, kind.rule)))
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
    app.plugins.ensure_ready(&country)?;
    let found = catalog::find_by_path(&app.plugins, &company.id, &country, &path);
    let (identity, method) = found.ok_or_else(|| Error::not_found("path not found"))?;
    let order = Lookup::read(&body, &identity, method)?;
    let found = lookup::look_up(&app, &company, &identity, order, run.name("uid")).await?;
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
