//! Nigeria's records in Dojah's format.

use serde_json::{Value, json};

use super::request::Query;
use crate::registers::{days, national, people::Person};

pub(super) fn bvn_validation(person: &Person, query: &Query) -> Value {
    let name_is_right = query.matches_record("first_name", &person.first_name);
    let confidence = if name_is_right { 100 } else { 0 };
    json!({
        "bvn": { "value": person.number, "status": true },
        "first_name": { "confidence_value": confidence, "status": name_is_right },
    })
}

pub(super) fn bvn_basic(person: &Person, _: &Query) -> Value {
    json!({
        "bvn": person.number,
        "first_name": person.first_name,
        "last_name": person.last_name,
        "mobile": national(person.phone.as_ref()),
        "dob": days::named(person.born),
        "formatted_dob": days::iso(person.born),
    })
}

pub(super) fn bvn(person: &Person, _: &Query) -> Value {
    bvn_record(person)
}

/// The full record with a status.
pub(super) fn bvn_advance(person: &Person, _: &Query) -> Value {
    let mut record = bvn_record(person);
    record["status"] = json!(200);
    record
}

pub(super) fn bvn_record(person: &Person) -> Value {
    let (state, lga, ..) = person.home;
    let (origin_state, origin_lga, ..) = person.origin;
    json!({
        "bvn": person.number,
        "first_name": person.first_name,
        "middle_name": person.middle_name,
        "last_name": person.last_name,
        "date_of_birth": days::named(person.born),
        "phone_number1": national(person.phone.as_ref()),
        "phone_number2": national(person.second_phone.as_ref()),
        "registration_date": days::named(person.issued),
        "enrollment_bank": person.bank.1,
        "enrollment_branch": person.home.2,
        "email": person.email.as_deref().unwrap_or_default(),
        "gender": person.gender(),
        "level_of_account": "Level 2 - Medium Level Accounts",
        "lga_of_origin": origin_lga,
        "lga_of_residence": lga,
        "marital_status": person.marital_status,
        "name_on_card": person.full_name().to_uppercase(),
        "nationality": "Nigeria",
        "nin": person.digits("nin", 11),
        "residential_address": person.address,
        "state_of_origin": format!("{origin_state} State"),
        "state_of_residence": format!("{state} State"),
        "title": person.title(),
        "watch_listed": if person.watch_listed { "YES" } else { "NO" },
        "image": person.photo(),
    })
}

pub(super) fn nin(person: &Person, _: &Query) -> Value {
    nin_record(person)
}

pub(super) fn nin_record(person: &Person) -> Value {
    let mut record = json!({
        "nin": person.number,
        "title": person.title().to_lowercase(),
        "first_name": person.first_name,
        "middle_name": person.middle_name,
        "surname": person.last_name,
        "maiden_name": null,
        "gender": person.sex().to_lowercase(),
        "birth_date": days::dashed(person.born),
        "email": person.email,
        "telephone": national(person.phone.as_ref()),
        "central_id": person.digits("central id", 8),
        "educational_level": "tertiary",
        "employment_status": "employed",
        "profession": person.profession,
        "religion": person.religion.to_lowercase(),
        "height": person.height.to_string(),
        "marital_status": person.marital_status.to_lowercase(),
        "nationality": "Nigeria",
        "spoken_language": person.origin.3.to_uppercase(),
        "picture": person.photo(),
        "signature": "",
    });
    if let (Some(record), Value::Object(places)) = (record.as_object_mut(), places_json(person)) {
        record.extend(places);
    }
    record
}

/// Places of birth and residence, and the next of kin, the second part of whose address is a list.
fn places_json(person: &Person) -> Value {
    let (state, lga, town, _) = person.home;
    let (origin_state, origin_lga, origin_town, _) = person.origin;
    let (kin_state, kin_lga, kin_town, _) = person.kin.place;
    json!({
        "birth_country": "nigeria",
        "birth_state": origin_state.to_uppercase(),
        "birth_lga": origin_lga,
        "origin_state": origin_state,
        "origin_lga": origin_lga,
        "origin_place": origin_town,
        "residence_address": person.address,
        "residence_town": town,
        "residence_lga": lga,
        "residence_state": state,
        "residence_status": "birth",
        "nok_first_name": person.kin.first_name,
        "nok_surname": person.kin.last_name,
        "nok_address_1": person.kin.address,
        "nok_address_2": [],
        "nok_town": kin_town,
        "nok_lga": kin_lga,
        "nok_state": kin_state,
    })
}

pub(super) fn vnin(person: &Person, _: &Query) -> Value {
    vnin_record(person)
}

pub(super) fn vnin_record(person: &Person) -> Value {
    json!({
        "vnin": person.number,
        "firstname": person.first_name,
        "middlename": person.middle_name,
        "surname": person.last_name,
        "gender": person.sex().to_lowercase(),
        "dateOfBirth": days::iso(person.born),
        "mobile": national(person.phone.as_ref()),
        "photo": person.photo(),
        "user_id": person.digits("user id", 10),
    })
}

/// Without a photo: Dojah has no photos of drivers.
pub(super) fn license(person: &Person, _: &Query) -> Value {
    json!({
        "personal_details": {
            "surname": person.last_name,
            "firstname": person.first_name,
            "othername": person.middle_name,
            "birth_date": days::slashed(person.born),
            "gender": person.gender(),
            "height": format!("{}.{:02}", person.height / 100, person.height % 100),
            "blood_group_id": person.pick("blood", &["A+", "AB+", "B+", "O+", "O-"]),
            "country": "Nigeria",
            "state": person.origin.0,
            "lga": person.origin.1,
            "facial_mark": "NO",
            "glasses": person.pick("glasses", &["NO", "YES"]),
            "is_disability": "NO",
            "disability_reason": "",
            "mother_maiden_name": person.pick("mother", &["Grace", "Hadiza", "Ronke"]),
            "nin_number": person.digits("nin", 11),
            "universaltax_identity_number": person.digits("tin", 10),
        },
    })
}

pub(super) fn passport(person: &Person, _: &Query) -> Value {
    json!({
        "passport_number": person.number,
        "surname": person.last_name,
        "first_name": person.first_name,
        "other_names": person.middle_name,
        "gender": person.gender(),
        "date_of_birth": days::iso(person.born),
        "date_of_issue": days::iso(person.issued),
        "expiry_date": days::iso(person.expiry_date(10)),
        "issue_place": person.home.0.to_uppercase(),
        "document_type": "Standard Passport",
        "photo": person.photo(),
    })
}

pub(super) fn voter(person: &Person, _: &Query) -> Value {
    let (state, lga, town, _) = person.home;
    json!({
        "full_name": person.full_name().to_uppercase(),
        "voter_identification_number": person.number,
        "gender": person.gender(),
        "occupation": person.profession,
        "time_of_registration": format!("{} 11:20:35", days::iso(person.issued)),
        "state": state,
        "local_government": lga,
        "registration_area_ward": format!("{town} WARD"),
        "polling_unit": format!("{town} PRIMARY SCHOOL"),
        "polling_unit_code": person.digits("polling unit", 9),
    })
}

pub(super) fn company(person: &Person, _: &Query) -> Value {
    json!({
        "rc_number": person.number,
        "company_name": person.company(),
        "address": person.address,
        "date_of_registration": days::iso(person.issued),
    })
}

pub(super) fn phone_basic(person: &Person, _: &Query) -> Value {
    json!({
        "firstName": person.first_name,
        "middleName": person.middle_name,
        "lastName": person.last_name,
        "gender": person.gender(),
        "nationality": "NGA",
        "msisdn": msisdn(person),
        "birthDate": days::iso(person.born),
    })
}

/// One field keeps the register's own spelling.
pub(super) fn phone(person: &Person, _: &Query) -> Value {
    let (state, lga, town, _) = person.home;
    let (origin_state, origin_lga, origin_town, _) = person.origin;
    json!({
        "nin": person.digits("nin", 11),
        "title": person.title().to_lowercase(),
        "firstName": person.first_name,
        "middleName": person.middle_name,
        "lastName": person.last_name,
        "gender": person.gender(),
        "birthDate": days::iso(person.born),
        "birthState": origin_state,
        "birthLga": origin_lga,
        "msisdn": msisdn(person),
        "educationalLevel": "tertiary",
        "emplymentStatus": "employed",
        "height": person.height.to_string(),
        "lga": lga,
        "maritalStatus": person.marital_status.to_lowercase(),
        "nspokenLang": person.origin.3.to_uppercase(),
        "ospokenlang": "****",
        "picture": person.photo(),
        "profession": person.profession,
        "religion": person.religion.to_lowercase(),
        "residenceLga": lga,
        "residenceState": state,
        "residenceStatus": "birth",
        "residenceTown": town,
        "selfOriginLga": origin_lga,
        "selfOriginPlace": origin_town,
        "selfOriginState": origin_state,
        "state": state,
        "status": 200,
    })
}

/// Returns the digits of the E.164 number.
fn msisdn(person: &Person) -> String {
    let phone = person.phone.as_deref().unwrap_or_default();
    phone.trim_start_matches('+').to_owned()
}
