//! BVN and voter's card.

use serde_json::{Value, json};
use tollhouse_plugin::identity_lookup::Guest;

use super::{PREMBLY, by_dojah, by_prembly, changed, contacts, details, found, host, question};
use crate::Nigeria;

fn prembly_bvn() -> Value {
    json!({
        "bvn": "54651333604", "firstName": "Ada", "middleName": "N/A", "lastName": " Obi ",
        "dateOfBirth": "28-06-2000", "registrationDate": "21-Mar-2018", "enrollmentBank": "058",
        "enrollmentBranch": "Ikeja", "email": "ADA@Example.com", "gender": "Female",
        "levelOfAccount": "Level 2 - Medium Level Accounts", "lgaOfOrigin": "Nsukka",
        "lgaOfResidence": "Ikeja", "maritalStatus": "Single", "nin": "****", "nameOnCard": "OBI ADA",
        "nationality": "Nigeria", "phoneNumber1": "07012345678", "phoneNumber2": "2348012345678",
        "residentialAddress": "1 Example Street", "stateOfOrigin": "Enugu State",
        "stateOfResidence": "Lagos State", "title": "Miss", "watchListed": "NO",
        "base64Image": "data:image/jpeg;base64,/9j/4AAQ\n SkZJRg=="
    })
}

fn dojah_bvn() -> Value {
    json!({
        "bvn": "54651333604", "first_name": "Ada", "middle_name": "", "last_name": "Obi",
        "date_of_birth": "28-Jun-2000", "registration_date": "21-Mar-2018", "enrollment_bank": "058",
        "enrollment_branch": "Ikeja", "email": "ada@example.com", "gender": "Female",
        "level_of_account": "Level 2 - Medium Level Accounts", "lga_of_origin": "Nsukka",
        "lga_of_residence": "Ikeja", "marital_status": "Single", "name_on_card": "OBI ADA",
        "nationality": "Nigeria", "phone_number1": "07012345678", "phone_number2": "08012345678",
        "residential_address": "1 Example Street", "state_of_origin": "Enugu State",
        "state_of_residence": "Lagos State", "title": "Miss", "watch_listed": "NO",
        "image": "/9j/4AAQSkZJRg=="
    })
}

fn published_bvn() -> Value {
    json!({
        "first_name": "Ada", "last_name": "Obi", "middle_name": null, "date_of_birth": "28/06/2000",
        "registration_date": "21/03/2018", "enrollment_bank": "058", "enrollment_branch": "Ikeja",
        "email": "ada@example.com", "gender": "Female",
        "level_of_account": "Level 2 - Medium Level Accounts", "lga_of_origin": "Nsukka",
        "lga_of_residence": "Ikeja", "marital_status": "Single", "name_on_card": "OBI ADA",
        "nationality": "Nigeria", "phone_number": "+2347012345678",
        "phone_number2": "+2348012345678", "residential_address": "1 Example Street",
        "state_of_origin": "Enugu State", "state_of_residence": "Lagos State", "title": "Miss",
        "watch_listed": "NO", "image": "/9j/4AAQSkZJRg=="
    })
}

#[test]
fn a_bvn_is_the_same_from_both_upstreams() {
    let entries = [
        by_prembly("bvn", "bvn", "bvn_data", prembly_bvn()).unwrap(),
        by_prembly("bvn", "bvn", "data", prembly_bvn()).unwrap(),
        by_dojah("bvn", "kyc/bvn/advance", dojah_bvn()).unwrap(),
    ];
    for entry in entries {
        assert_eq!(details(&entry), published_bvn());
        assert_eq!(contacts(&entry), (Some("ada@example.com"), Some("+2347012345678")));
    }
}

#[test]
fn missing_fields_of_a_bvn_are_null() {
    let entry = by_prembly("bvn", "bvn", "data", json!({"firstName": "Ada"})).unwrap();
    let mut nothing = published_bvn();
    nothing.as_object_mut().unwrap().values_mut().for_each(|value| *value = Value::Null);
    assert_eq!(details(&entry), changed(&nothing, json!({"first_name": "Ada"})));
    assert_eq!(contacts(&entry), (None, None));
}

#[test]
fn a_watch_listed_response_code_overrides_the_record() {
    let mut response = found("bvn_data", prembly_bvn());
    response["response_code"] = json!("07");
    let _host = host().answer("POST", &format!("{PREMBLY}/bvn"), 200, response).install();
    let entry = Nigeria::lookup(question("bvn", "54651333604")).unwrap();
    assert_eq!(details(&entry), changed(&published_bvn(), json!({"watch_listed": "YES"})));
}

#[test]
fn the_second_phone_number_is_used_if_the_first_is_missing() {
    for first in [json!("****"), json!("0701****678"), json!(null), json!("none")] {
        let record = changed(&prembly_bvn(), json!({"phoneNumber1": first, "email": "none"}));
        let entry = by_prembly("bvn", "bvn", "data", record).unwrap();
        assert_eq!(contacts(&entry), (None, Some("+2348012345678")), "{first}");
    }
}

#[test]
fn a_voters_card_is_the_same_from_both_upstreams() {
    let prembly = json!({
        "vin": "987F545AJ67890", "fullName": "ADA OBI", "gender": "female", "occupation": "TRADER",
        "date_of_birth": "1990-05-21", "state": "ENUGU", "lga": "NSUKKA",
        "registrationAreaWard": "WARD 3", "pollingUnit": "TOWN HALL", "pollingUnitCode": "14/02/03/004",
        "timeOfRegistration": "2011-02-07 13:50:07", "phone_number": "08012345678"
    });
    // Some names in Dojah's responses end in a stray colon.
    let dojah = json!({
        "full_name": "ADA OBI", "voter_identification_number": "987F545AJ67890", "gender": "female",
        "occupation": "TRADER", "date_of_birth:": "21/05/1990", "state": "ENUGU",
        "local_government:": "NSUKKA", "registration_area_ward:": "WARD 3",
        "polling_unit:": "TOWN HALL", "polling_unit_code:": "14/02/03/004",
        "time_of_registration": "2011-02-07 13:50:07", "phone": "2348012345678"
    });
    let published = json!({
        "vin": "987F545AJ67890", "full_name": "ADA OBI", "first_name": null, "last_name": null,
        "gender": "female", "occupation": "TRADER", "date_of_birth": "21/05/1990", "state": "ENUGU",
        "lga": "NSUKKA", "registration_area_ward": "WARD 3", "polling_unit": "TOWN HALL",
        "polling_unit_code": "14/02/03/004", "time_of_registration": "2011-02-07 13:50:07",
        "phone_number": "+2348012345678", "address": null, "image": null
    });
    for entry in [
        by_prembly("voters_card", "voters_card", "vc_data", prembly.clone()).unwrap(),
        by_prembly("voters_card", "voters_card", "data", prembly).unwrap(),
        by_dojah("voters_card", "kyc/vin", dojah).unwrap(),
    ] {
        assert_eq!(details(&entry), published);
        assert_eq!(contacts(&entry), (None, Some("+2348012345678")));
    }
}
