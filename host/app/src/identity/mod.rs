//! Identity lookups in registers, and verification that a customer is the person on record.
//!
//! Nothing here depends on a country: the manifests of country plugins define types, paths and
//! fields, see `catalog`. A result is stored as a [`Uid`], sealed, and deleted when it expires.

pub mod api;
mod catalog;
mod image;
mod lookup;
pub mod lookups;
mod openapi;
mod store;
mod verification;

use futures::{FutureExt, future::BoxFuture};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use self::catalog::Identity;
pub use self::{
    image::ImageLimiter,
    openapi::{LookupDescription, describe_lookups},
    store::{SEALED, Uid},
};
use crate::{customers::UserKey, state::App};
use tollhouse_platform::{
    clock::Timestamp,
    error::{Error, Result},
    values::id::CompanyId,
};
use tollhouse_plugins::{FaceComparison, RegisterEntry};

/// Feature that a plan must include for lookups.
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

impl From<FaceComparison> for Face {
    fn from(told: FaceComparison) -> Face {
        let confidence = f64::from(told.confidence) / 100.0;
        Face { status: told.matches, confidence, message: told.message }
    }
}

impl Record {
    /// Omits invalid addresses, to which no code could be sent.
    fn new(entry: RegisterEntry, face: Option<FaceComparison>) -> Record {
        Record {
            details: entry.details,
            email: entry.email.filter(|email| tollhouse_platform::values::email::is_valid(email)),
            phone: entry.phone.filter(|phone| tollhouse_platform::values::phone::is_e164(phone)),
            face: face.map(Face::from),
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
        let methods = [
            (
                Method::FaceValidation,
                identity.is_some_and(|identity| identity.identity_type().face),
            ),
            (Method::Otp, verification::can_be_verified_by_code(identity, &record)),
        ];
        View {
            id: self.id,
            user: self.user_key,
            user_id: self.user_id,
            identity: catalog::id_of(&self.identity),
            identity_name: self.identity,
            verified: self.verified_at.is_some(),
            verified_at: self.verified_at,
            verified_by: self.verified_by.0,
            can_be_verified_by: methods
                .into_iter()
                .filter_map(|(method, can)| can.then_some(method))
                .collect(),
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
pub fn sweep(app: App) -> BoxFuture<'static, Result<u64>> {
    async move {
        let now = app.clock.now();
        let erased =
            app.store.write_in_batches(async move |tx, most| store::sweep(tx, now, most).await);
        erased.await.map_err(Error::from)
    }
    .boxed()
}
