//! What Dojah is asked for each type. Where it needs two calls for one answer, each has half of the time.

mod api;
mod document;
mod face;

use tollhouse_plugin::identity::Question;
use tollhouse_plugin::identity_face::Comparison;
use tollhouse_plugin::record::Record;
use tollhouse_plugin::types::Fault;

use crate::identity::{self, Identity, last_name, of_person};

pub(crate) fn lookup(
    identity: Identity,
    question: &Question,
    timeout_ms: u32,
) -> Result<Record, Fault> {
    let number = question.identifier.as_str();
    let phone = identity::dialled(number);
    let (path, name, value) = match identity {
        Identity::Bvn => ("kyc/bvn/advance", "bvn", number),
        Identity::Nin => ("kyc/nin", "nin", number),
        Identity::VirtualNin => ("kyc/vnin", "vnin", number),
        Identity::DriversLicense => ("kyc/dl", "license_number", number),
        Identity::Passport => ("kyc/passport", "passport_number", number),
        Identity::VotersCard => ("kyc/vin", "vin", number),
        Identity::Cac => ("kyc/cac", "rc_number", identity::firm(number).1),
        Identity::PhoneNumber => ("kyc/phone_number", "phone_number", phone.as_str()),
    };
    let mut query = vec![(name, value)];
    if identity == Identity::Passport {
        query.extend(of_person(question, last_name).map(|surname| ("surname", surname)));
    }
    api::record(api::get(path, &query, timeout_ms)?)
}

pub(crate) fn compare(
    identity: Identity,
    question: &Question,
    selfie: &str,
    timeout_ms: u32,
) -> Result<(Record, Comparison), Fault> {
    match identity {
        Identity::Bvn => face::by_number("bvn", question, selfie, timeout_ms),
        Identity::Nin => face::by_number("nin", question, selfie, timeout_ms),
        Identity::DriversLicense | Identity::Passport => {
            let record = lookup(identity, question, timeout_ms / 2)?;
            let comparison = face::by_photo(&record, question, selfie, timeout_ms / 2)?;
            Ok((record, comparison))
        }
        _ => Err(identity::not_offered()),
    }
}

pub(crate) fn read(
    identity: Identity,
    document: &str,
    timeout_ms: u32,
) -> Result<(String, Record), Fault> {
    if !matches!(identity, Identity::DriversLicense | Identity::Passport) {
        return Err(identity::not_offered());
    }
    let seen = document::analyse(identity, document, timeout_ms / 2)?;
    let identifier = seen.identifier.clone();
    let question =
        Question { identity: String::new(), identifier: seen.identifier, person: seen.person };
    Ok((identifier, lookup(identity, &question, timeout_ms / 2)?))
}
