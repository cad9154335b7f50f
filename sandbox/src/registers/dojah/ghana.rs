//! Ghana's records in Dojah's format. Further parameters of a lookup are compared, but never cause
//! a refusal.

use serde_json::{Value, json};

use super::request::Query;
use crate::registers::{days, people::Person};

pub(super) fn license(person: &Person, query: &Query) -> Value {
    let born = days::slashed(person.born);
    json!({
        "id": person.number,
        "full_name": person.full_name().to_uppercase(),
        "date_of_birth": born,
        "issue_date": days::slashed(person.issued),
        "expiry_date": days::slashed(person.expiry_date(6)),
        "certificate_date": days::slashed(person.issued),
        "pin": person.digits("pin", 8),
        "processing_center": person.home.2.to_uppercase(),
        "picture": person.photo(),
        "is_full_name_match": query.matches_record("full_name", &person.full_name()),
        "is_date_of_birth_match": matches_birth_date(person, query),
        "status": 200,
    })
}

pub(super) fn passport(person: &Person, query: &Query) -> Value {
    json!({
        "id": person.number,
        "first_name": person.first_name,
        "middle_name": person.middle_name,
        "last_name": person.last_name,
        "gender": person.gender(),
        "date_of_birth": days::iso(person.born),
        "issue_date": days::iso(person.issued),
        "expiry_date": days::iso(person.expiry_date(10)),
        "place_of_birth": person.origin.2,
        "place_of_issue": "ACCRA",
        "picture": person.photo(),
        "is_first_name_match": query.matches_record("first_name", &person.first_name),
        "is_middle_name_match": query.matches_record("middle_name", &person.middle_name),
        "is_last_name_match": query.matches_record("last_name", &person.last_name),
        "is_date_of_birth_match": matches_birth_date(person, query),
        "status": 200,
    })
}

pub(super) fn ssnit(person: &Person, query: &Query) -> Value {
    json!({
        "id": person.number,
        "full_name": person.full_name().to_uppercase(),
        "card_serial": person.digits("card", 9),
        "date_of_birth": days::iso(person.born),
        "gender": person.gender(),
        "picture": person.photo(),
        "is_full_name_match": query.matches_record("full_name", &person.full_name()),
        "is_date_of_birth_match": matches_birth_date(person, query),
        "status": 200,
    })
}

pub(super) fn voter(person: &Person, query: &Query) -> Value {
    json!({
        "id": person.number,
        "full_name": person.full_name().to_uppercase(),
        "date_of_birth": days::iso(person.born),
        "gender": person.gender(),
        "picture": person.photo(),
        "polling_station": format!("{} MARKET", person.home.2.to_uppercase()),
        "registration_date": days::iso(person.issued),
        "is_full_name_match": query.matches_record("full_name", &person.full_name()),
        "status": 200,
    })
}

fn matches_birth_date(person: &Person, query: &Query) -> bool {
    query.matches_record("date_of_birth", &days::iso(person.born))
}
