use serde_json::json;

use super::{by_dojah, by_prembly, contacts, details};

const PATH: &str = "drivers_license/advance/v2";

#[test]
fn a_licence_has_one_shape_under_all_names() {
    let published = json!({
        "first_name": "Ada", "last_name": "Obi", "middle_name": "Ngozi", "gender": "Female",
        "issued_date": "10/01/2024", "expiry_date": "09/01/2029", "issued_at": "LAGOS",
        "image": "/9j/4AAQ"
    });
    let basic = json!({
        "licenseNo": "AAD23208212298", "firstName": "Ada", "lastName": "Obi", "middleName": "Ngozi",
        "gender": "Female", "birthDate": "21-05-1990", "issuedDate": "2024-01-10",
        "expiryDate": "2029-01-09", "stateOfIssue": "LAGOS", "photo": "/9j/4AAQ", "uuid": "1"
    });
    let second = json!({
        "driversLicense": "ABC12345YZ00", "firstname": "Ada", "lastname": "Obi", "middlename": "Ngozi",
        "birthdate": "01-01-1990", "gender": "Female", "issued_date": "10-Jan-24",
        "expiry_date": "09-Jan-29", "state_of_issue": "LAGOS",
        "photo": "data:image/jpeg;base64,/9j/4AAQ"
    });
    for record in [basic, second] {
        let entry = by_prembly("drivers_license", PATH, "frsc_data", record).unwrap();
        assert_eq!(details(&entry), published);
        assert_eq!(contacts(&entry), (None, None));
    }
}

#[test]
fn the_long_form_has_the_drivers_contact_data() {
    let record = json!({"name": "ADA OBI", "gender": "Female", "mother_name": "Bo", "dob": "21-05-1990",
        "issued_date": "10-01-2024", "validity": "09-01-2029", "phone": "08012345678",
        "email": "ADA@example.com", "nok_phone": "08099999999"});
    let entry = by_prembly("drivers_license", PATH, "frsc_data", record).unwrap();
    let published = json!({"first_name": null, "last_name": null, "middle_name": null,
        "gender": "Female", "issued_date": "10/01/2024", "expiry_date": "09/01/2029",
        "issued_at": null, "image": null});
    assert_eq!(details(&entry), published);
    assert_eq!(contacts(&entry), (Some("ada@example.com"), Some("+2348012345678")));
}

#[test]
fn the_person_in_an_inner_object_of_dojah_is_read() {
    let record = json!({"uuid": "1", "license_number": "AAD23208212298", "personal_details": {
        "firstname": "Ada", "surname": "Obi", "othername": "Ngozi", "birth_date": "18/05/1992",
        "gender": "Female", "state": "Enugu"}});
    let published = json!({"first_name": "Ada", "last_name": "Obi", "middle_name": "Ngozi",
        "gender": "Female", "issued_date": null, "expiry_date": null, "issued_at": null,
        "image": null});
    assert_eq!(details(&by_dojah("drivers_license", "kyc/dl", record).unwrap()), published);
}
