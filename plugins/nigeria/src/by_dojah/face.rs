//! Compares a selfie with the photo that a register has under a number, or with a given photo.

use serde_json::{Value, json};
use tollhouse_plugin::identity::Question;
use tollhouse_plugin::identity_face::Comparison;
use tollhouse_plugin::normal;
use tollhouse_plugin::record::Record;
use tollhouse_plugin::types::Fault;

use super::api;
use crate::identity::{first_name, last_name, person_field};

/// Minimum confidence of a match, in percent, if Dojah returns only a confidence.
const THRESHOLD: f64 = 90.0;

/// Names of the object with the comparison; without it, the comparison is in the entity itself.
const COMPARISONS: [&str; 2] = ["selfie_verification", "selfie"];

const SELFIE: &str = "selfie_image";

pub(super) fn by_number(
    register: &str,
    question: &Question,
    selfie: &str,
    timeout_ms: u32,
) -> Result<(Record, Comparison), Fault> {
    let body = json!({register: question.identifier, SELFIE: selfie});
    let path = format!("kyc/{register}/verify");
    let mut record = api::record(api::post(&path, &body, SELFIE, timeout_ms)?)?;
    let comparison = comparison(&mut record)?;
    if record.is_empty() {
        return Err(api::unexpected_response("Dojah's response has no record"));
    }
    Ok((record, comparison))
}

/// Compares a selfie with the photo in a record. Without a photo, the fault is `unavailable`.
pub(super) fn by_photo(
    record: &Record,
    question: &Question,
    selfie: &str,
    timeout_ms: u32,
) -> Result<Comparison, Fault> {
    let photo = record.first(&["image", "photo", "picture"], normal::image).ok_or_else(|| {
        Fault::unavailable("Dojah has no photo to compare with").with_code("no-photo")
    })?;
    let mut body = json!({SELFIE: selfie, "photoid_image": photo});
    for (name, part) in [
        ("first_name", person_field(question, first_name)),
        ("last_name", person_field(question, last_name)),
    ] {
        if let Some(part) = part {
            body[name] = part.into();
        }
    }
    comparison(&mut api::record(api::post("kyc/photoid/verify", &body, SELFIE, timeout_ms)?)?)
}

/// Returns the comparison, and removes its object from the entity.
fn comparison(entity: &mut Record) -> Result<Comparison, Fault> {
    let inner = COMPARISONS.iter().find_map(|name| entity.take(name).and_then(Record::of));
    let value = inner.as_ref().unwrap_or(entity);
    let matches = value.first(&["match"], Value::as_bool);
    let percent = value.first(&["confidence_value"], |value| match value {
        Value::String(text) => text.trim().parse().ok(),
        value => value.as_f64(),
    });
    if matches.is_none() && percent.is_none() {
        return Err(api::unexpected_response("Dojah returned no comparison"));
    }
    let percent = percent.unwrap_or_default();
    Ok(normal::comparison(matches.unwrap_or(percent >= THRESHOLD), percent))
}
