//! Identities: what registers say of a customer, and whether the customer is that person.
//!
//! No country is known here. Countries are plugins: their manifests say which types of identity there are, under which paths, and
//! what is asked; see `catalog`. What a register said is a [`Uid`]: sealed in the database, and erased when it expires.

pub mod api;
mod catalog;
mod image;
mod lookup;
mod openapi;
mod store;
mod verification;

use futures::{FutureExt, future::BoxFuture};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use self::catalog::Identity;
pub use self::{
    image::Images,
    openapi::{Documented, documented},
    store::{SEALED, Uid},
};
use crate::{
    app::App,
    clock::Timestamp,
    error::{Error, Result},
    plugins::{Comparison, Entry},
};

/// What a plan must include for lookups.
pub const FEATURE: &str = "identity";

/// How long a UID record is kept, from its creation.
const KEPT_SECONDS: i64 = 30 * 24 * 3600;

/// What a register said, as it is sealed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Record {
    details: Map<String, Value>,
    email: Option<String>,
    phone: Option<String>,
    face: Option<Face>,
}

/// What came of comparing a selfie with the photo on record.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "FaceData")]
pub struct Face {
    /// Whether they show one person.
    status: bool,
    /// In percent, from 0 to 100.
    confidence: f64,
    message: String,
}

/// How an identity is verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Method {
    Otp,
    FaceValidation,
}

/// What a register says of somebody.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "Uid")]
pub struct View {
    id: String,
    /// The linked user's id.
    user: Option<String>,
    /// As the lookup named the user.
    user_id: Option<String>,
    /// The id of its type: the same on every host.
    identity: String,
    /// The type's name: `nigeria.bvn`.
    identity_name: String,
    verified: bool,
    verified_at: Option<Timestamp>,
    verified_by: Vec<Method>,
    can_be_verified_by: Vec<Method>,
    /// The latest comparison.
    face_data: Option<Face>,
    /// What the register says; its shape depends on the type.
    details: Map<String, Value>,
    email: Option<String>,
    /// In E.164.
    phone_number: Option<String>,
    /// 30 days after its creation; then it is erased.
    expires_at: Timestamp,
    created_at: Timestamp,
    updated_at: Timestamp,
}

impl From<Comparison> for Face {
    fn from(told: Comparison) -> Face {
        let confidence = f64::from(told.confidence) / 100.0;
        Face { status: told.matches, confidence, message: told.message }
    }
}

impl Record {
    /// Addresses that are none are left out: nothing could be sent there.
    fn new(entry: Entry, face: Option<Comparison>) -> Record {
        Record {
            details: entry.details,
            email: entry.email.filter(|email| crate::email::is_valid(email)),
            phone: entry.phone.filter(|phone| crate::phone::is_e164(phone)),
            face: face.map(Face::from),
        }
    }

    fn open(app: &App, uid: &Uid) -> Result<Record> {
        let json = app.sealer.open(&seal_context(&uid.company_id, &uid.id), &uid.record)?;
        serde_json::from_str(&json).map_err(Error::internal)
    }

    /// `None`, and a line in the log, when it is damaged.
    fn open_or_log(app: &App, uid: &Uid) -> Option<Record> {
        let opened = Record::open(app, uid);
        let log = |error: &Error| {
            let (company, id) = (&*uid.company_id, &*uid.id);
            tracing::error!(company, id, error = %error.chain(), "what a register said cannot be read");
        };
        opened.inspect_err(log).ok()
    }

    fn seal(&self, app: &App, company_id: &str, id: &str) -> Result<String> {
        let json = serde_json::to_string(self).map_err(Error::internal)?;
        Ok(app.sealer.seal(&seal_context(company_id, id), &json))
    }
}

impl Uid {
    /// A verified one stays verified, whatever a later lookup finds.
    fn verify(&mut self, method: Method, now: Timestamp) {
        if !self.verified_by.0.contains(&method) {
            self.verified_by.0.push(method);
        }
        self.verified_at.get_or_insert(now);
        self.updated_at = now;
    }

    /// `identity` is its type, if that is still there.
    fn view(self, record: Record, identity: Option<&Identity>) -> View {
        let methods = [
            (Method::FaceValidation, identity.is_some_and(|identity| identity.kind().face)),
            (Method::Otp, verification::is_possible(identity, &record)),
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

/// The context under which what a register said is sealed.
fn seal_context(company_id: &str, id: &str) -> String {
    format!("uids/{company_id}/{id}/record")
}

/// Erases what has expired; answers how many that were.
pub fn sweep(app: App) -> BoxFuture<'static, Result<u64>> {
    async move {
        let now = app.clock.now();
        let erased =
            app.store.write_in_pieces(async move |tx, most| store::sweep(tx, now, most).await);
        erased.await.map_err(Error::from)
    }
    .boxed()
}
