//! Identity register calls in the host's own types. All values are personal: they are never logged.

use bytes::Bytes;
use serde_json::{Map, Value};

use crate::{Country, CountryPlugin};

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

impl CountryPlugin {
    /// Returns the manifest's description of the country.
    ///
    /// # Panics
    /// Never: admission rejects a component of this kind without a description.
    #[must_use]
    pub fn country(&self) -> &Country {
        self.manifest().country.as_ref().expect("the manifest of a country has a country section")
    }
}
