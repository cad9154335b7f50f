//! What Prembly is asked for each type.

use prembly::Answer;
use serde_json::{Map, Value, json};
use tollhouse_plugin::identity::Question;
use tollhouse_plugin::identity_face::Comparison;
use tollhouse_plugin::record::Record;
use tollhouse_plugin::types::Fault;
use tollhouse_plugin::{normal, settings};

use crate::identity::{
    self, Identity, date_of_birth, first_name, last_name, not_offered, of_person,
};

/// Where the number of a document stands.
const NUMBERS: [&str; 5] =
    ["license_no", "drivers_license", "passport_number", "current_passport_number", "number"];

pub(crate) fn lookup(
    identity: Identity,
    question: &Question,
    timeout_ms: u32,
) -> Result<Record, Fault> {
    let number = question.identifier.as_str();
    let (path, body) = match identity {
        Identity::Bvn => ("bvn".to_owned(), json!({"number": number})),
        // Either number goes by the one name.
        Identity::Nin | Identity::VirtualNin => ("vnin".to_owned(), json!({"number_nin": number})),
        Identity::DriversLicense => {
            (settings::required("prembly_drivers_license")?, licence(question))
        }
        Identity::Passport => ("national_passport".to_owned(), passport(question)),
        Identity::VotersCard => ("voters_card".to_owned(), json!({"number": number})),
        Identity::Cac => {
            let (kind, digits) = identity::firm(number);
            ("cac".to_owned(), json!({"rc_number": digits, "company_type": kind}))
        }
        Identity::PhoneNumber => {
            ("phone_number/advance".to_owned(), json!({"number": identity::dialled(number)}))
        }
    };
    Ok(prembly::ask(&path, &body, timeout_ms)?.record)
}

pub(crate) fn compare(
    identity: Identity,
    question: &Question,
    selfie: &str,
    timeout_ms: u32,
) -> Result<(Record, Comparison), Fault> {
    let number = json!({"number": question.identifier});
    let (path, mut body) = match identity {
        Identity::Bvn => ("bvn_w_face", number),
        Identity::Nin => ("nin_w_face", number),
        Identity::DriversLicense => {
            ("drivers_license/face", with(number, "dob", of_person(question, date_of_birth)))
        }
        Identity::Passport => ("national_passport_with_face", passport(question)),
        _ => return Err(not_offered()),
    };
    body["image"] = selfie.into();
    let answer = prembly::ask(path, &body, timeout_ms)?;
    let comparison = answer.comparison()?;
    Ok((answer.record, comparison))
}

/// The identifier, and the record that Prembly has for it.
pub(crate) fn read(
    identity: Identity,
    document: &str,
    timeout_ms: u32,
) -> Result<(String, Record), Fault> {
    let path = match identity {
        Identity::DriversLicense => "drivers_license/image",
        Identity::Passport => "national_passport_image",
        _ => return Err(not_offered()),
    };
    let Answer { record, .. } = prembly::ask(path, &json!({"image": document}), timeout_ms)?;
    let number = record.first(&NUMBERS, normal::text);
    let identifier = number.and_then(|number| identity.read(&number));
    let identifier = identifier.ok_or_else(|| {
        Fault::unavailable("Prembly read no number on the document").with_code("unexpected-answer")
    })?;
    Ok((identifier, record))
}

/// The register wants to see more than the number; without a user there is no more.
fn licence(question: &Question) -> Value {
    let body =
        with(json!({"number": question.identifier}), "first_name", of_person(question, first_name));
    let body = with(body, "last_name", of_person(question, last_name));
    with(body, "dob", of_person(question, date_of_birth))
}

fn passport(question: &Question) -> Value {
    with(json!({"number": question.identifier}), "last_name", of_person(question, last_name))
}

fn with(body: Value, name: &str, value: Option<&str>) -> Value {
    let mut fields: Map<String, Value> = body.as_object().cloned().unwrap_or_default();
    if let Some(value) = value {
        fields.insert(name.to_owned(), value.into());
    }
    Value::Object(fields)
}
