//! Identity register calls in the host's own types. All values are personal: they are never logged.

use std::ops::Deref;

use bytes::Bytes;
use futures::FutureExt;
use serde_json::{Map, Value};

use crate::{CallError, Country, Credentials, PluginHandle};

/// User data that a register may compare with its entry.
#[derive(Clone)]
pub struct Person {
    pub first_name: String,
    pub last_name: String,
    /// `YYYY-MM-DD`.
    pub date_of_birth: Option<String>,
}

/// The subject of an identity lookup.
#[derive(Clone)]
pub struct IdentityQuery {
    /// Name of an identity type in the country's manifest.
    pub identity: String,
    /// An identifier that matches the type's pattern.
    pub identifier: String,
    pub person: Option<Person>,
}

pub struct RegisterEntry {
    /// Details as returned to companies.
    pub details: Map<String, Value>,
    pub email: Option<String>,
    pub phone: Option<String>,
}

/// A JPEG or PNG image.
#[derive(Clone)]
pub struct Image {
    pub media_type: &'static str,
    pub bytes: Bytes,
}

/// The result of comparing a selfie with the photo on record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FaceComparison {
    pub matches: bool,
    /// Hundredths of a percent, at most 10,000.
    pub confidence: u32,
    pub message: String,
}

#[derive(Clone)]
pub struct CountryPlugin(pub(crate) PluginHandle);

impl Deref for CountryPlugin {
    type Target = PluginHandle;

    fn deref(&self) -> &PluginHandle {
        &self.0
    }
}

impl CountryPlugin {
    /// Returns the manifest's description of the country.
    ///
    /// # Panics
    /// Never: admission rejects a component of this kind without a description.
    #[must_use]
    pub fn country(&self) -> &Country {
        self.manifest().country.as_ref().expect("the manifest of a country has a country section")
    }

    pub async fn look_up(
        &self,
        credentials: &Credentials,
        question: &IdentityQuery,
    ) -> Result<RegisterEntry, CallError> {
        let guest = &self.plugin.guest;
        self.call("identity-lookup.lookup", credentials, &|run| {
            guest.look_up(run.store, run.instance, question).boxed()
        })
        .await
    }

    /// Looks up an entry and compares its photo with a selfie.
    pub async fn compare(
        &self,
        credentials: &Credentials,
        question: &IdentityQuery,
        selfie: &Image,
    ) -> Result<(RegisterEntry, FaceComparison), CallError> {
        let guest = &self.plugin.guest;
        self.call("identity-face.compare", credentials, &|run| {
            guest.compare(run.store, run.instance, question, selfie).boxed()
        })
        .await
    }

    /// Looks up the entry for a document. Returns the identifier on the document and the entry.
    pub async fn read(
        &self,
        credentials: &Credentials,
        identity: &str,
        document: &Image,
    ) -> Result<(String, RegisterEntry), CallError> {
        let guest = &self.plugin.guest;
        self.call("identity-document.read", credentials, &|run| {
            guest.read(run.store, run.instance, identity, document).boxed()
        })
        .await
    }
}
