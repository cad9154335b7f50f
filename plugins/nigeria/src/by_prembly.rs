//! Requests to Prembly for each identity type.

use prembly::LookupResult;
use serde_json::{Map, Value, json};
use tollhouse_plugin::identity::Question;
use tollhouse_plugin::identity_face::Comparison;
use tollhouse_plugin::record::Record;
use tollhouse_plugin::types::Fault;
use tollhouse_plugin::{normal, settings};

use crate::identity::{
    self, IdentityType, date_of_birth, first_name, last_name, person_field, unsupported_lookup,
};

/// Names of the field with the document number.
const NUMBERS: [&str; 5] =
    ["license_no", "drivers_license", "passport_number", "current_passport_number", "number"];

pub(crate) fn lookup(
    identity: IdentityType,
    question: &Question,
    timeout_ms: u32,
) -> Result<Record, Fault> {
    let number = question.identifier.as_str();
    let (path, body) = match identity {
        IdentityType::Bvn => ("bvn".to_owned(), json!({"number": number})),
        // Prembly uses one name for both kinds of number.
        IdentityType::Nin | IdentityType::VirtualNin => {
            ("vnin".to_owned(), json!({"number_nin": number}))
        }
        IdentityType::DriversLicense => {
            (settings::required("prembly_drivers_license")?, license_body(question))
        }
        IdentityType::Passport => ("national_passport".to_owned(), passport_body(question)),
        IdentityType::VotersCard => ("voters_card".to_owned(), json!({"number": number})),
        IdentityType::Cac => {
            let (kind, digits) = identity::split_company_number(number);
            ("cac".to_owned(), json!({"rc_number": digits, "company_type": kind}))
        }
        IdentityType::PhoneNumber => (
            "phone_number/advance".to_owned(),
            json!({"number": identity::national_format(number)}),
        ),
    };
    Ok(prembly::call(&path, &body, timeout_ms)?.record)
}

pub(crate) fn compare(
    identity: IdentityType,
    question: &Question,
    selfie: &str,
    timeout_ms: u32,
) -> Result<(Record, Comparison), Fault> {
    let number = json!({"number": question.identifier});
    let (path, mut body) = match identity {
        IdentityType::Bvn => ("bvn_w_face", number),
        IdentityType::Nin => ("nin_w_face", number),
        IdentityType::DriversLicense => (
            "drivers_license/face",
            with_field(number, "dob", person_field(question, date_of_birth)),
        ),
        IdentityType::Passport => ("national_passport_with_face", passport_body(question)),
        _ => return Err(unsupported_lookup()),
    };
    body["image"] = selfie.into();
    let result = prembly::call(path, &body, timeout_ms)?;
    let comparison = result.comparison()?;
    Ok((result.record, comparison))
}

/// Reads a document; returns its identifier and Prembly's record of it.
pub(crate) fn read(
    identity: IdentityType,
    document: &str,
    timeout_ms: u32,
) -> Result<(String, Record), Fault> {
    let path = match identity {
        IdentityType::DriversLicense => "drivers_license/image",
        IdentityType::Passport => "national_passport_image",
        _ => return Err(unsupported_lookup()),
    };
    let LookupResult { record, .. } = prembly::call(path, &json!({"image": document}), timeout_ms)?;
    let number = record.first(&NUMBERS, normal::text);
    let identifier = number.and_then(|number| identity.normalize_number(&number));
    let identifier = identifier.ok_or_else(|| {
        Fault::unavailable("Prembly returned no document number").with_code("unexpected-answer")
    })?;
    Ok((identifier, record))
}

/// The register also requires name and date of birth, known only if the lookup has a user.
fn license_body(question: &Question) -> Value {
    let body = with_field(
        json!({"number": question.identifier}),
        "first_name",
        person_field(question, first_name),
    );
    let body = with_field(body, "last_name", person_field(question, last_name));
    with_field(body, "dob", person_field(question, date_of_birth))
}

fn passport_body(question: &Question) -> Value {
    with_field(
        json!({"number": question.identifier}),
        "last_name",
        person_field(question, last_name),
    )
}

fn with_field(body: Value, name: &str, value: Option<&str>) -> Value {
    let mut fields: Map<String, Value> = body.as_object().cloned().unwrap_or_default();
    if let Some(value) = value {
        fields.insert(name.to_owned(), value.into());
    }
    Value::Object(fields)
}
