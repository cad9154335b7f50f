//! Licences, passports, voter's cards and companies in Prembly's format.

use serde_json::{Value, json};

use super::records::{merge, or_empty};
use crate::registers::{days, national, people::Person};

/// Validity in years.
const LICENSE_YEARS: u32 = 5;
const PASSPORT_YEARS: u32 = 10;

pub(super) fn license(person: &Person) -> Value {
    json!({
        "licenseNo": person.number,
        "firstName": person.first_name,
        "middleName": person.middle_name,
        "lastName": person.last_name,
        "gender": person.gender(),
        "birthDate": days::iso(person.born),
        "issuedDate": days::iso(person.issued),
        "expiryDate": days::iso(person.expiry_date(LICENSE_YEARS)),
        "stateOfIssue": person.home.0.to_uppercase(),
        "photo": person.photo(),
        "uuid": person.uuid(),
    })
}

pub(super) fn license_verified(person: &Person) -> Value {
    let mut record = license(person);
    merge(&mut record, json!({ "verified": true, "message": "The licence is valid" }));
    record
}

pub(super) fn license_advance(person: &Person) -> Value {
    let (state, _, town, _) = person.home;
    let (origin_state, origin_lga, ..) = person.origin;
    let metres = format!("{}.{:02}", person.height / 100, person.height % 100);
    json!({
        "driversLicense": person.number,
        "name": person.full_name(),
        "gender": person.gender(),
        "mother_name": format!("{} {}", person.pick("mother", &["Grace", "Hadiza", "Ronke"]), person.last_name),
        "height_in_metres": metres,
        "dob": days::slashed(person.born),
        "tin": person.digits("tin", 10),
        "issued_date": days::slashed(person.issued),
        "validity": days::slashed(person.expiry_date(LICENSE_YEARS)),
        "lga_of_origin": origin_lga,
        "face_mark": "NO",
        "blood_group": person.pick("blood", &["A+", "AB+", "B+", "O+", "O-"]),
        "state_of_origin": origin_state,
        "nationality": "Nigerian",
        "glasses": person.pick("glasses", &["NO", "YES"]),
        "disability": "NONE",
        "nin": person.digits("nin", 11),
        "phone": national(person.phone.as_ref()),
        "email": or_empty(person.email.as_ref()),
        "nok_phone": format!("0803{}", person.digits("kin phone", 7)),
        "address_line1": person.address,
        "address_line2": "",
        "city": town,
        "state": state,
        "postal_code": person.digits("postal code", 6),
        "photo": person.photo(),
    })
}

pub(super) fn license_v2(person: &Person) -> Value {
    json!({
        "driversLicense": person.number,
        "firstname": person.first_name,
        "middlename": person.middle_name,
        "lastname": person.last_name,
        "gender": person.gender(),
        "birthdate": days::dashed(person.born),
        "issuedDate": days::dashed(person.issued),
        "expiryDate": days::dashed(person.expiry_date(LICENSE_YEARS)),
        "stateOfIssue": person.home.0,
        "photo": person.photo(),
    })
}

pub(super) fn passport(person: &Person) -> Value {
    json!({
        "number": person.number,
        "reference_id": person.digits("reference", 9),
        "first_name": person.first_name,
        "middle_name": person.middle_name,
        "last_name": person.last_name,
        "dob": days::iso(person.born),
        "gender": person.gender(),
        "issued_date": days::iso(person.issued),
        "expiry_date": days::iso(person.expiry_date(PASSPORT_YEARS)),
        "issued_at": person.home.0.to_uppercase(),
        "mobile": national(person.phone.as_ref()),
        "photo": format!("data:image/jpeg;base64,{}", person.photo()),
        "signature": "",
    })
}

pub(super) fn passport_v2(person: &Person) -> Value {
    let midnight = person.born.and_time(chrono::NaiveTime::MIN).and_utc();
    json!({
        "currentFirstName": person.first_name,
        "currentMiddleName": person.middle_name,
        "currentLastName": person.last_name,
        "currentGender": person.gender(),
        "currentDateOfBirthLabel": days::slashed(person.born),
        "currentDateOfBirth": midnight.timestamp_millis(),
        "currentPassportNumber": person.number,
        "currentPassportType": "Standard",
        "currentPlaceOfBirth": person.origin.2,
        "successful": true,
    })
}

pub(super) fn voter(person: &Person) -> Value {
    let (state, lga, town, _) = person.home;
    json!({
        "vin": person.number,
        "fullName": person.full_name().to_uppercase(),
        "first_name": person.first_name,
        "last_name": person.last_name,
        "gender": person.gender(),
        "occupation": person.profession,
        "date_of_birth": days::iso(person.born),
        "phone_number": national(person.phone.as_ref()),
        "address": person.address,
        "state": state,
        "lga": lga,
        "registrationAreaWard": format!("{town} WARD"),
        "pollingUnit": format!("{town} PRIMARY SCHOOL"),
        "pollingUnitCode": person.digits("polling unit", 9),
        "timeOfRegistration": format!("{} 11:20:35", days::iso(person.issued)),
        "photo": person.photo(),
    })
}

pub(super) fn company(person: &Person) -> Value {
    let (state, lga, town, _) = person.home;
    json!({
        "rc_number": person.number,
        "company_name": person.company(),
        "company_status": "ACTIVE",
        "company_address": person.address,
        "branchAddress": person.address,
        "state": state,
        "city": town,
        "lga": lga,
        "email_address": or_empty(person.email.as_ref()),
        "date_of_registration": days::iso(person.issued),
        "directors": [{ "name": person.full_name(), "designation": "DIRECTOR" }],
    })
}

/// A search result: a list with one company.
pub(super) fn company_advance(person: &Person) -> Value {
    let mut company = company(person);
    merge(
        &mut company,
        json!({ "registrationDate": days::iso(person.issued), "address": person.address }),
    );
    json!([company])
}
