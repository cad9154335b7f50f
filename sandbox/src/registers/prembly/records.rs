//! Records of persons, with the field names of the registers behind Prembly, misspellings included.

use serde_json::{Value, json};

use crate::registers::{days, national, people::Person};

pub(super) fn bvn_basic(person: &Person) -> Value {
    json!({
        "bvn": person.number,
        "firstName": person.first_name,
        "middleName": person.middle_name,
        "lastName": person.last_name,
        "dateOfBirth": days::named(person.born),
        "gender": person.gender(),
        "phoneNumber1": national(person.phone.as_ref()),
        "watchListed": watch_listed(person),
    })
}

pub(super) fn bvn(person: &Person) -> Value {
    let (state, lga, ..) = person.home;
    let (origin_state, origin_lga, ..) = person.origin;
    json!({
        "bvn": person.number,
        "firstName": person.first_name,
        "middleName": person.middle_name,
        "lastName": person.last_name,
        "dateOfBirth": days::named(person.born),
        "registrationDate": days::named_briefly(person.issued),
        "enrollmentBank": person.bank.0,
        "enrollmentBranch": person.home.2,
        "email": or_empty(person.email.as_ref()),
        "gender": person.gender(),
        "levelOfAccount": "Level 2 - Medium Level Accounts",
        "lgaOfOrigin": origin_lga,
        "lgaOfResidence": lga,
        "maritalStatus": person.marital_status,
        "nameOnCard": person.full_name().to_uppercase(),
        "nationality": "Nigeria",
        "nin": person.digits("nin", 11),
        "phoneNumber1": national(person.phone.as_ref()),
        "phoneNumber2": national(person.second_phone.as_ref()),
        "residentialAddress": person.address,
        "stateOfOrigin": format!("{origin_state} State"),
        "stateOfResidence": format!("{state} State"),
        "title": person.title(),
        "watchListed": watch_listed(person),
        "base64Image": person.photo(),
    })
}

fn watch_listed(person: &Person) -> &'static str {
    if person.watch_listed { "YES" } else { "NO" }
}

pub(super) fn nin_basic(person: &Person) -> Value {
    json!({
        "nin": nin_of(person),
        "firstname": person.first_name,
        "middlename": person.middle_name,
        "surname": person.last_name,
        "birthdate": days::dashed(person.born),
        "gender": person.sex().to_lowercase(),
        "telephoneno": national(person.phone.as_ref()),
        "photo": person.photo(),
    })
}

/// A virtual NIN does not reveal the real one.
fn nin_of(person: &Person) -> String {
    if is_virtual(person) { "****".to_owned() } else { person.number.clone() }
}

fn is_virtual(person: &Person) -> bool {
    person.key.len() == 16
}

pub(super) fn nin(person: &Person) -> Value {
    let vnin = if is_virtual(person) { person.number.as_str() } else { "" };
    let mut record = merge_all([home_json(person), origin_json(person), kin_json(person)]);
    merge(&mut record, register_entry(person));
    merge(
        &mut record,
        json!({
            "nin": nin_of(person),
            "vnin": vnin,
            "emplymentstatus": "employed",
            "heigth": person.height.to_string(),
        }),
    );
    record
}

/// Phone lookups use the same register, with fewer misspellings.
pub(super) fn phone_advance(person: &Person) -> Value {
    let (state, _, town, _) = person.home;
    let mut record = merge_all([home_json(person), origin_json(person), kin_json(person)]);
    merge(&mut record, register_entry(person));
    merge(
        &mut record,
        json!({
            "nin": person.digits("nin", 11),
            "employmentstatus": "employed",
            "height": person.height.to_string(),
            "othername": person.middle_name,
            "state": state,
            "place": town,
        }),
    );
    record
}

pub(super) fn phone_basic(person: &Person) -> Value {
    json!({
        "firstName": person.first_name,
        "middlename": person.middle_name,
        "surname": person.last_name,
        "phoneNumber": national(person.phone.as_ref()),
        "dateOfBirth": days::iso(person.born),
    })
}

fn register_entry(person: &Person) -> Value {
    json!({
        "birthdate": days::dashed(person.born),
        "centralID": person.digits("central id", 8),
        "documentno": "",
        "educationallevel": "tertiary",
        "email": or_empty(person.email.as_ref()),
        "firstname": person.first_name,
        "gender": person.sex().to_lowercase(),
        "maidenname": "****",
        "maritalstatus": person.marital_status.to_lowercase(),
        "middlename": person.middle_name,
        "nationality": "Nigeria",
        "nspokenlang": person.origin.3.to_uppercase(),
        "ospokenlang": "****",
        "pfirstname": "****",
        "photo": person.photo(),
        "pmiddlename": "****",
        "profession": person.profession,
        "psurname": "****",
        "religion": person.religion.to_lowercase(),
        "signature": "",
        "surname": person.last_name,
        "telephoneno": national(person.phone.as_ref()),
        "title": person.title().to_lowercase(),
        "trackingId": person.digits("tracking id", 15),
        "userid": person.digits("user id", 10),
    })
}

fn home_json(person: &Person) -> Value {
    let (state, lga, town, _) = person.home;
    json!({
        "residence_address": person.address,
        "residence_town": town,
        "residence_lga": lga,
        "residence_state": state,
        "residencestatus": "birth",
    })
}

fn origin_json(person: &Person) -> Value {
    let (state, lga, town, _) = person.origin;
    json!({
        "birthcountry": "nigeria",
        "birthstate": state.to_uppercase(),
        "birthlga": lga,
        "self_origin_state": state,
        "self_origin_lga": lga,
        "self_origin_place": town,
    })
}

fn kin_json(person: &Person) -> Value {
    let (state, lga, town, _) = person.kin.place;
    json!({
        "nok_firstname": person.kin.first_name,
        "nok_middlename": "",
        "nok_surname": person.kin.last_name,
        "nok_address1": person.kin.address,
        "nok_address2": "",
        "nok_town": town,
        "nok_lga": lga,
        "nok_state": state,
        "nok_postalcode": "",
    })
}

pub(super) fn or_empty(text: Option<&String>) -> &str {
    text.map_or("", String::as_str)
}

fn merge_all(parts: [Value; 3]) -> Value {
    let mut whole = json!({});
    parts.into_iter().for_each(|part| merge(&mut whole, part));
    whole
}

pub(super) fn merge(into: &mut Value, more: Value) {
    if let (Some(into), Value::Object(more)) = (into.as_object_mut(), more) {
        into.extend(more);
    }
}
