//! Identity lookups in registers, and verification that a customer is the person on record.
//!
//! Nothing here depends on a country: the manifests of country plugins define types, paths and
//! fields, see `catalog`. A result is stored as a [`Uid`], sealed, and deleted when it expires.

pub mod api;
mod catalog;
mod image;
mod lookup;
pub mod lookups;
mod store;
mod verification;

use serde::Deserialize;

use self::catalog::Identity;
pub use self::{
    image::ImageLimiter,
    store::{SEALED, Uid},
};
use crate::{customers::UserKey, state::prelude::*};
use tollhouse_platform::values::{email, phone};
use tollhouse_plugins::{FaceComparison, RegisterEntry};

pub const FEATURE: &str = "identity";

/// Retention of a UID record from its creation.
const RETENTION_SECONDS: i64 = 30 * 24 * 3600;

/// Result of a lookup, before sealing.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Record {
    details: Map<String, Value>,
    email: Option<String>,
    phone: Option<String>,
    face: Option<Face>,
}

/// Result of comparing a selfie with the photo on record.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "FaceData")]
pub struct Face {
    /// `true` if both show the same person.
    status: bool,
    /// Percentage from 0 to 100.
    confidence: f64,
    message: String,
}

/// Verification method.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Method {
    Otp,
    FaceValidation,
}

/// A UID record: the result of an identity lookup.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "Uid")]
pub struct View {
    id: String,
    /// Internal id of the linked user.
    user: Option<UserKey>,
    /// `user_id` as sent in the lookup.
    user_id: Option<String>,
    /// Id of the identity type, the same on every host.
    identity: String,
    /// Name of the identity type, for example `nigeria.bvn`.
    identity_name: String,
    verified: bool,
    verified_at: Option<Timestamp>,
    verified_by: Vec<Method>,
    can_be_verified_by: Vec<Method>,
    /// Latest face comparison.
    face_data: Option<Face>,
    /// Identity data, whose fields depend on the type.
    details: Map<String, Value>,
    email: Option<String>,
    /// E.164 format.
    phone_number: Option<String>,
    /// 30 days after creation; the record is then deleted.
    expires_at: Timestamp,
    created_at: Timestamp,
    updated_at: Timestamp,
}

impl Record {
    /// Omits invalid addresses, to which no code could be sent.
    fn new(entry: RegisterEntry, face: Option<FaceComparison>) -> Record {
        Record {
            details: entry.details,
            email: entry.email.filter(|email| email::is_valid(email)),
            phone: entry.phone.filter(|phone| phone::is_e164(phone)),
            face: face.map(|face| Face {
                status: face.matches,
                confidence: f64::from(face.confidence) / 100.0,
                message: face.message,
            }),
        }
    }

    fn open(app: &App, uid: &Uid) -> Result<Record> {
        let json = app.sealer.open(&seal_context(&uid.company_id, &uid.id), &uid.record)?;
        serde_json::from_str(&json).map_err(Error::internal)
    }

    /// Returns `None` and logs an error if the record cannot be opened.
    fn open_or_log(app: &App, uid: &Uid) -> Option<Record> {
        let opened = Record::open(app, uid);
        let log = |error: &Error| {
            let (company, id) = (&*uid.company_id, &*uid.id);
            tracing::error!(company, id, error = %error.chain(), "identity record cannot be opened");
        };
        opened.inspect_err(log).ok()
    }

    fn seal(&self, app: &App, company_id: &CompanyId, id: &str) -> Result<String> {
        let json = serde_json::to_string(self).map_err(Error::internal)?;
        Ok(app.sealer.seal(&seal_context(company_id, id), &json))
    }
}

impl Uid {
    /// Marks the record as verified, permanently.
    fn verify(&mut self, method: Method, now: Timestamp) {
        if !self.verified_by.0.contains(&method) {
            self.verified_by.0.push(method);
        }
        self.verified_at.get_or_insert(now);
        self.updated_at = now;
    }

    /// `identity` is the type of the record, if it is still installed.
    fn view(self, record: Record, identity: Option<&Identity>) -> View {
        let by_face = identity.is_some_and(|identity| identity.identity_type().face);
        let by_code = verification::can_be_verified_by_code(identity, &record);
        let methods = [by_face.then_some(Method::FaceValidation), by_code.then_some(Method::Otp)];
        View {
            id: self.id,
            user: self.user_key,
            user_id: self.user_id,
            identity: catalog::id_of(&self.identity),
            identity_name: self.identity,
            verified: self.verified_at.is_some(),
            verified_at: self.verified_at,
            verified_by: self.verified_by.0,
            can_be_verified_by: methods.into_iter().flatten().collect(),
            face_data: record.face,
            details: record.details,
            email: record.email,
            phone_number: record.phone,
            expires_at: self.expires_at,
            created_at: self.created_at,
            updated_at: self.updated_at,
        }
    }
}

fn seal_context(company_id: &str, id: &str) -> String {
    format!("uids/{company_id}/{id}/record")
}

/// Deletes expired records and returns their number.
pub async fn sweep(app: App) -> Result<u64> {
    let now = app.clock.now();
    let sweep = async move |tx: &mut Tx, most| store::sweep(tx, now, most).await;
    Ok(app.store.write_in_batches(sweep).await?)
}
