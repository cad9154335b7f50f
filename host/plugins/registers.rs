//! What the host asks of a country's registers, in the host's own types. All of it is about somebody: nothing of it may be logged.

use std::ops::Deref;

use bytes::Bytes;
use futures::FutureExt;
use serde_json::{Map, Value};

use super::{CallError, Callable, Country, Credentials};

/// What the host knows of the user whose entry is asked for.
#[derive(Clone)]
pub struct Person {
    pub first_name: String,
    pub last_name: String,
    /// `YYYY-MM-DD`.
    pub date_of_birth: Option<String>,
}

/// What to look for.
#[derive(Clone)]
pub struct Question {
    /// The name of a type in the country's manifest.
    pub identity: String,
    /// As the type's pattern has it.
    pub identifier: String,
    pub person: Option<Person>,
}

/// What stands in a register.
pub struct Entry {
    /// As callers get it.
    pub details: Map<String, Value>,
    pub email: Option<String>,
    pub phone: Option<String>,
}

/// A JPEG or a PNG.
#[derive(Clone)]
pub struct Image {
    pub media_type: &'static str,
    pub bytes: Bytes,
}

/// A selfie beside the photo on record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Comparison {
    pub matches: bool,
    /// In hundredths of a percent, 10,000 at most.
    pub confidence: u32,
    pub message: String,
}

/// A country's registers, ready to be called.
#[derive(Clone)]
pub struct Registers(pub(super) Callable);

impl Deref for Registers {
    type Target = Callable;

    fn deref(&self) -> &Callable {
        &self.0
    }
}

impl Registers {
    /// What the manifest says of them.
    ///
    /// # Panics
    /// Never: a component of this kind without it is not admitted.
    #[must_use]
    pub fn country(&self) -> &Country {
        self.manifest().country.as_ref().expect("a country's manifest describes the country")
    }

    pub async fn look_up(
        &self,
        credentials: &Credentials,
        question: &Question,
    ) -> Result<Entry, CallError> {
        let guest = &self.plugin.guest;
        self.call("identity-lookup.lookup", credentials, &|run| {
            guest.look_up(run.store, run.instance, question).boxed()
        })
        .await
    }

    /// Looks up, and compares the photo on record with a selfie.
    pub async fn compare(
        &self,
        credentials: &Credentials,
        question: &Question,
        selfie: &Image,
    ) -> Result<(Entry, Comparison), CallError> {
        let guest = &self.plugin.guest;
        self.call("identity-face.compare", credentials, &|run| {
            guest.compare(run.store, run.instance, question, selfie).boxed()
        })
        .await
    }

    /// Looks up what stands on a document: its identifier, and the entry.
    pub async fn read(
        &self,
        credentials: &Credentials,
        identity: &str,
        document: &Image,
    ) -> Result<(String, Entry), CallError> {
        let guest = &self.plugin.guest;
        self.call("identity-document.read", credentials, &|run| {
            guest.read(run.store, run.instance, identity, document).boxed()
        })
        .await
    }
}
