//! Requests to Dojah for each identity type. Where a lookup needs two requests, each gets half of
//! the time.

mod api;
mod document;
mod face;

use tollhouse_plugin::identity::Question;
use tollhouse_plugin::identity_face::Comparison;
use tollhouse_plugin::record::Record;
use tollhouse_plugin::types::Fault;

use crate::identity::{self, IdentityType, last_name, person_field};

pub(crate) fn lookup(
    identity: IdentityType,
    question: &Question,
    timeout_ms: u32,
) -> Result<Record, Fault> {
    let number = question.identifier.as_str();
    let phone = identity::national_format(number);
    let (path, name, value) = match identity {
        IdentityType::Bvn => ("kyc/bvn/advance", "bvn", number),
        IdentityType::Nin => ("kyc/nin", "nin", number),
        IdentityType::VirtualNin => ("kyc/vnin", "vnin", number),
        IdentityType::DriversLicense => ("kyc/dl", "license_number", number),
        IdentityType::Passport => ("kyc/passport", "passport_number", number),
        IdentityType::VotersCard => ("kyc/vin", "vin", number),
        IdentityType::Cac => ("kyc/cac", "rc_number", identity::split_company_number(number).1),
        IdentityType::PhoneNumber => ("kyc/phone_number", "phone_number", phone.as_str()),
    };
    let mut query = vec![(name, value)];
    if identity == IdentityType::Passport {
        query.extend(person_field(question, last_name).map(|surname| ("surname", surname)));
    }
    api::record(api::get(path, &query, timeout_ms)?)
}

pub(crate) fn compare(
    identity: IdentityType,
    question: &Question,
    selfie: &str,
    timeout_ms: u32,
) -> Result<(Record, Comparison), Fault> {
    match identity {
        IdentityType::Bvn => face::by_number("bvn", question, selfie, timeout_ms),
        IdentityType::Nin => face::by_number("nin", question, selfie, timeout_ms),
        IdentityType::DriversLicense | IdentityType::Passport => {
            let record = lookup(identity, question, timeout_ms / 2)?;
            let comparison = face::by_photo(&record, question, selfie, timeout_ms / 2)?;
            Ok((record, comparison))
        }
        _ => Err(identity::unsupported_lookup()),
    }
}

pub(crate) fn read(
    identity: IdentityType,
    document: &str,
    timeout_ms: u32,
) -> Result<(String, Record), Fault> {
    if !matches!(identity, IdentityType::DriversLicense | IdentityType::Passport) {
        return Err(identity::unsupported_lookup());
    }
    let seen = document::analyze(identity, document, timeout_ms / 2)?;
    let identifier = seen.identifier.clone();
    let question =
        Question { identity: String::new(), identifier: seen.identifier, person: seen.person };
    Ok((identifier, lookup(identity, &question, timeout_ms / 2)?))
}
