//! NIN, virtual NIN and phone number, which share one register.

use serde_json::{Value, json};

use super::{by_dojah, by_prembly, changed, contacts, details};

/// Parses an object with more fields than `json!` supports.
fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

fn prembly() -> Value {
    parsed(
        r#"{
        "birthcountry": "nigeria", "birthdate": "10-06-1993", "birthlga": "Nsukka", "birthstate": "Enugu",
        "centralID": "C1", "documentno": "D1", "educationallevel": "tertiary",
        "email": "Ada@Example.com", "emplymentstatus": "employed", "firstname": "Ada", "gender": "f",
        "heigth": "167", "maidenname": "", "maritalstatus": "single", "middlename": "Ngozi",
        "nationality": "", "nin": "12345678909", "nok_address1": "2 Example Street",
        "nok_address2": "Flat 3", "nok_firstname": "Bo", "nok_lga": "Ikeja", "nok_middlename": "C",
        "nok_postalcode": "100001", "nok_state": "Lagos", "nok_surname": "Eze", "nok_town": "Ikeja",
        "nspokenlang": "IGBO", "ospokenlang": "ENGLISH", "pfirstname": "Adaeze", "photo": "/9j/4AAQ",
        "pmiddlename": "N", "profession": "TRADER", "psurname": "Eze", "religion": "christianity",
        "residence_AddressLine1": "1 Example Street", "residence_Town": "Ikeja",
        "residence_lga": "Ikeja", "residence_state": "Lagos", "residencestatus": "birth",
        "self_origin_lga": "Nsukka", "self_origin_place": "Opi", "self_origin_state": "Enugu",
        "signature": "iVBORw0K", "surname": "Obi", "telephoneno": "08082838283", "title": "ms",
        "trackingId": "S7Y0", "userid": "****", "vnin": ""
    }"#,
    )
}

fn dojah() -> Value {
    parsed(
        r#"{
        "title": "ms", "birth_country": "nigeria", "birth_date": "10-06-1993", "birth_lga": "Nsukka",
        "birth_state": "Enugu", "central_id": "C1", "educational_level": "tertiary",
        "email": "ada@example.com", "employment_status": "employed", "first_name": "Ada",
        "gender": "f", "height": 167, "maiden_name": "", "marital_status": "single",
        "middle_name": "Ngozi", "nationality": "", "nok_address_1": "2 Example Street",
        "nok_address_2": "Flat 3", "nok_first_name": "Bo", "nok_lga": "Ikeja", "nok_state": "Lagos",
        "nok_surname": "Eze", "nok_town": "Ikeja", "origin_lga": "Nsukka", "origin_place": "Opi",
        "origin_state": "Enugu", "picture": "/9j/4AAQ", "profession": "TRADER",
        "religion": "christianity", "residence_address": "1 Example Street",
        "residence_lga": "Ikeja", "residence_state": "Lagos", "residence_status": "birth",
        "residence_town": "Ikeja", "signature": "iVBORw0K", "spoken_language": "IGBO",
        "surname": "Obi", "telephone": "08082838283"
    }"#,
    )
}

fn published() -> Value {
    parsed(
        r#"{
        "first_name": "Ada", "middle_name": "Ngozi", "last_name": "Obi", "title": "ms", "gender": "f",
        "date_of_birth": "10/06/1993", "birth_country": "nigeria", "birth_state": "Enugu",
        "birth_lga": "Nsukka", "email": "ada@example.com", "phone_number": "+2348082838283",
        "marital_status": "single", "level_of_education": "tertiary",
        "employment_status": "employed", "profession": "TRADER", "religion": "christianity",
        "height": "167", "residence_address": "1 Example Street", "residence_town": "Ikeja",
        "residence_lga": "Ikeja", "residence_state": "Lagos", "residence_status": "birth",
        "origin_state": "Enugu", "origin_lga": "Nsukka", "origin_place": "Opi",
        "nok_firstname": "Bo", "nok_middlename": "C", "nok_surname": "Eze",
        "nok_address1": "2 Example Street", "nok_address2": "Flat 3", "nok_town": "Ikeja",
        "nok_lga": "Ikeja", "nok_state": "Lagos", "nok_postalcode": "100001",
        "spoken_language": "IGBO", "other_spoken_language": "ENGLISH",
        "previous_firstname": "Adaeze", "previous_middlename": "N", "previous_surname": "Eze",
        "tracking_id": "S7Y0", "central_id": "C1", "image": "/9j/4AAQ", "signature": "iVBORw0K"
    }"#,
    )
}

/// Fields that only Prembly returns.
fn less() -> Value {
    json!({"nok_middlename": null, "nok_postalcode": null, "other_spoken_language": null,
        "previous_firstname": null, "previous_middlename": null, "previous_surname": null,
        "tracking_id": null})
}

fn nothing_but(known: Value) -> Value {
    let mut nothing = published();
    nothing.as_object_mut().unwrap().values_mut().for_each(|value| *value = Value::Null);
    changed(&nothing, known)
}

#[test]
fn nin_virtual_nin_and_phone_number_have_one_shape() {
    for (identity, path, name) in [
        ("nin", "vnin", "nin_data"),
        ("nin", "vnin", "data"),
        ("virtual_nin", "vnin", "nin_data"),
        ("phone_number", "phone_number/advance", "data"),
    ] {
        let entry = by_prembly(identity, path, name, prembly()).unwrap();
        assert_eq!(details(&entry), published(), "{identity}");
        assert_eq!(contacts(&entry), (Some("ada@example.com"), Some("+2348082838283")));
    }
    let entry = by_dojah("nin", "kyc/nin", dojah()).unwrap();
    assert_eq!(details(&entry), changed(&published(), less()));
    assert_eq!(contacts(&entry), (Some("ada@example.com"), Some("+2348082838283")));
}

#[test]
fn other_spellings_in_a_phone_lookup_are_read() {
    let mut record = changed(
        &prembly(),
        json!({"employmentstatus": "employed", "height": "167", "othername": "Ngozi",
            "residence_address": "1 Example Street", "residence_town": "Ikeja"}),
    );
    for name in
        ["emplymentstatus", "heigth", "middlename", "residence_AddressLine1", "residence_Town"]
    {
        record.as_object_mut().unwrap().remove(name);
    }
    let entry = by_prembly("phone_number", "phone_number/advance", "data", record).unwrap();
    assert_eq!(details(&entry), published());
}

#[test]
fn a_phone_lookup_with_few_fields_is_read() {
    let known = json!({"first_name": "Ada", "middle_name": "Ngozi", "last_name": "Obi",
        "phone_number": "+2348082838283", "date_of_birth": "10/06/1993"});
    let prembly = json!({"firstName": "Ada", "middlename": "Ngozi", "surname": "Obi",
        "phoneNumber": "08082838283", "dateOfBirth": "1993-06-10"});
    let dojah = json!({"firstName": "Ada", "middleName": "Ngozi", "lastName": "Obi",
        "msisdn": "2348082838283", "birthDate": "1993-06-10", "gender": "f", "nin": "12345678909",
        "picture": "/9j/4AAQ"});
    let entry = by_prembly("phone_number", "phone_number/advance", "data", prembly).unwrap();
    assert_eq!(details(&entry), nothing_but(known.clone()));
    let entry = by_dojah("phone_number", "kyc/phone_number", dojah).unwrap();
    let known = changed(&known, json!({"gender": "f", "image": "/9j/4AAQ"}));
    assert_eq!(details(&entry), nothing_but(known));
    assert_eq!(contacts(&entry), (None, Some("+2348082838283")));
}

#[test]
fn a_virtual_nin_from_dojah_is_read() {
    let record = json!({"dateOfBirth": "1993-06-10", "firstname": "Ada", "gender": "f",
        "middlename": "", "mobile": "08082838283", "photo": "/9j/4AAQ", "surname": "Obi",
        "user_id": "U1", "vnin": "AA1234567890123B"});
    let entry = by_dojah("virtual_nin", "kyc/vnin", record).unwrap();
    let known = json!({"first_name": "Ada", "last_name": "Obi", "gender": "f",
        "phone_number": "+2348082838283", "date_of_birth": "10/06/1993", "image": "/9j/4AAQ"});
    assert_eq!(details(&entry), nothing_but(known));
}
