use serde_json::{Value, json};

use super::{by_dojah, by_prembly, changed, contacts, details};

fn published() -> Value {
    json!({
        "first_name": "Ada", "last_name": "Obi", "middle_name": "Ngozi", "date_of_birth": "21/08/1994",
        "gender": "Female", "issued_date": "10/01/2024", "expiry_date": "09/01/2034",
        "issued_at": "IKOYI", "image": "/9j/4AAQ", "signature": "iVBORw0K",
        "phone_number": "+2348012345678"
    })
}

#[test]
fn a_passport_is_the_same_from_both_upstreams() {
    let prembly = json!({
        "reference_id": "1", "number": "A00400000", "first_name": "Ada", "last_name": "Obi",
        "middle_name": "Ngozi", "dob": "1994-08-21", "gender": "Female", "issued_date": "2024-01-10",
        "expiry_date": "2034-01-09", "issued_at": "IKOYI", "photo": "data:image/jpeg;base64,/9j/ 4AAQ",
        "signature": "data:image/png;base64,iVBORw0K", "mobile": "08012345678"
    });
    let entry = by_prembly("passport", "national_passport", "data", prembly).unwrap();
    assert_eq!(details(&entry), published());
    assert_eq!(contacts(&entry), (None, Some("+2348012345678")));
    let dojah = json!({
        "passport_number": "A00400000", "document_type": "Standard Passport", "first_name": "Ada",
        "surname": "Obi", "other_names": "Ngozi", "gender": "Female", "date_of_birth": "1994-08-21",
        "date_of_issue": "2024-01-10", "expiry_date": "2034-01-09", "issue_place": "IKOYI",
        "photo": "/9j/4AAQ"
    });
    let entry = by_dojah("passport", "kyc/passport", dojah).unwrap();
    let less = json!({"signature": null, "phone_number": null});
    assert_eq!(details(&entry), changed(&published(), less));
}

#[test]
fn the_field_names_of_the_second_version_are_read() {
    let record = json!({
        "currentFirstName": "Ada", "currentMiddleName": "Ngozi", "currentLastName": "Obi",
        "currentGender": "Female", "currentDateOfBirthLabel": "21/08/1994",
        "currentDateOfBirth": 777_423_600_000_i64, "currentPassportNumber": "B50000947",
        "currentPassportType": "P", "currentPlaceOfBirth": "Nsukka", "successful": true
    });
    let known = json!({"issued_date": null, "expiry_date": null, "issued_at": null, "image": null,
        "signature": null, "phone_number": null});
    // Midnight in Lagos has the same date as the label.
    for label in [json!("21/08/1994"), json!(""), json!(null)] {
        let record = changed(&record, json!({"currentDateOfBirthLabel": label}));
        let entry = by_prembly("passport", "national_passport", "data", record).unwrap();
        assert_eq!(details(&entry), changed(&published(), known.clone()), "{label}");
    }
}
