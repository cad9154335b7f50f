//! Identity register calls, and conversions between their contract types and the host's own.

use serde_json::{Map, Value};
use wasmtime::{Store, component::Instance};

use super::{
    Guest, GuestResult, convert::truncate_text, exported, imported::identity as wit, not_supported,
};
use crate::{
    FaceComparison, Fault, FaultCategory, IdentityQuery, Image, Person, RegisterEntry,
    runtime::engine::State,
};

/// Maximum size of the details as JSON, photos included.
const MAX_DETAILS_BYTES: usize = 1 << 20;
const MAX_CONFIDENCE: u32 = 10_000;

impl Guest {
    pub async fn look_up(
        &self,
        store: &mut Store<State>,
        instance: &Instance,
        question: &IdentityQuery,
    ) -> GuestResult<RegisterEntry> {
        let Some(lookup) = &self.offers.identity_lookup else {
            return not_supported("identity-lookup");
        };
        let guest = lookup.load(&mut *store, instance)?;
        let answer = guest.call_lookup(store, &question.into()).await?;
        Ok(answer.map_err(Into::into).and_then(RegisterEntry::try_from))
    }

    pub async fn compare(
        &self,
        store: &mut Store<State>,
        instance: &Instance,
        question: &IdentityQuery,
        selfie: &Image,
    ) -> GuestResult<(RegisterEntry, FaceComparison)> {
        let Some(face) = &self.offers.identity_face else { return not_supported("identity-face") };
        let guest = face.load(&mut *store, instance)?;
        let answer = guest.call_compare(store, &question.into(), &selfie.into()).await?;
        Ok(answer.map_err(Into::into).and_then(|compared| {
            Ok((RegisterEntry::try_from(compared.entry)?, compared.comparison.into()))
        }))
    }

    pub async fn read(
        &self,
        store: &mut Store<State>,
        instance: &Instance,
        identity: &str,
        document: &Image,
    ) -> GuestResult<(String, RegisterEntry)> {
        let Some(documents) = &self.offers.identity_document else {
            return not_supported("identity-document");
        };
        let guest = documents.load(&mut *store, instance)?;
        let answer = guest.call_read(store, identity, &document.into()).await?;
        Ok(answer.map_err(Into::into).and_then(|reading| {
            Ok((truncate_text(reading.identifier), RegisterEntry::try_from(reading.entry)?))
        }))
    }
}

impl From<&IdentityQuery> for wit::Question {
    fn from(question: &IdentityQuery) -> wit::Question {
        wit::Question {
            identity: question.identity.clone(),
            identifier: question.identifier.clone(),
            person: question.person.as_ref().map(Into::into),
        }
    }
}

impl From<&Person> for wit::Person {
    fn from(person: &Person) -> wit::Person {
        wit::Person {
            first_name: person.first_name.clone(),
            last_name: person.last_name.clone(),
            date_of_birth: person.date_of_birth.clone(),
        }
    }
}

impl From<&Image> for wit::Image {
    fn from(image: &Image) -> wit::Image {
        wit::Image { media_type: image.media_type.to_owned(), bytes: image.bytes.to_vec() }
    }
}

impl From<exported::identity_face::Comparison> for FaceComparison {
    fn from(told: exported::identity_face::Comparison) -> FaceComparison {
        FaceComparison {
            matches: told.matches,
            confidence: told.confidence.min(MAX_CONFIDENCE),
            message: truncate_text(told.message),
        }
    }
}

impl TryFrom<wit::Entry> for RegisterEntry {
    type Error = Fault;

    fn try_from(entry: wit::Entry) -> Result<RegisterEntry, Fault> {
        let unusable =
            |message: &str| Fault::new(FaultCategory::Unavailable, "unexpected-answer", message);
        if entry.details.len() > MAX_DETAILS_BYTES {
            return Err(unusable("the details are larger than 1 MiB"));
        }
        // Invalid details contain personal data and must not be quoted.
        let details: Map<String, Value> = serde_json::from_str(&entry.details)
            .map_err(|_| unusable("the details are not a JSON object"))?;
        Ok(RegisterEntry {
            details,
            email: entry.email.map(truncate_text),
            phone: entry.phone.map(truncate_text),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn details_must_be_a_json_object_of_at_most_1_mib() {
        let entry = |details: String| {
            RegisterEntry::try_from(wit::Entry { details, email: None, phone: None })
                .map(|entry| entry.details)
        };
        assert_eq!(entry(r#"{"n":1.50}"#.to_owned()).unwrap()["n"].to_string(), "1.50");
        for bad in [
            "[]".to_owned(),
            "{".to_owned(),
            format!("{{\"a\":\"{}\"}}", "x".repeat(MAX_DETAILS_BYTES)),
        ] {
            assert_eq!(entry(bad).unwrap_err().code, "unexpected-answer");
        }
    }
}
