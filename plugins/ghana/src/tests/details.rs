use serde_json::{Value, json};

use super::{BASE, found, host, lookup, question};

fn published(identity: &str, path: &str, record: Value) -> Value {
    let _host = host().answer("POST", &format!("{BASE}/{path}"), 200, found(record)).install();
    serde_json::from_str(&lookup(question(identity, "N1")).unwrap().details).unwrap()
}

/// Returns the published fields for a record with few fields.
fn little(identity: &str, path: &str, record: Value) -> Vec<(String, Value)> {
    let Value::Object(fields) = published(identity, path, record) else { panic!("no object") };
    fields.into_iter().collect()
}

#[test]
fn a_passport_is_published() {
    let record = json!({
        "PassportNo": "G0000575", "FirstName": "Ama", "LastName": "Mensah", "MiddleName": "N/A",
        "Nationality": "GHANAIAN", "DateOfBirth": "21-May-1990", "Gender": "F",
        "PlaceOfBirth": "ACCRA", "PlaceOfIssue": "KUMASI", "IssueDate": "10/01/2024",
        "ExpiryDate": "2034-01-09T00:00:00", "Picture": "data:image/jpeg;base64,/9j/ 4AAQ",
        "Signature": "iVBORw0K"
    });
    let passport = json!({
        "passport_no": "G0000575", "first_name": "Ama", "last_name": "Mensah", "middle_name": null,
        "nationality": "GHANAIAN", "date_of_birth": "21/05/1990", "gender": "F",
        "place_of_birth": "ACCRA", "place_of_issue": "KUMASI", "issue_date": "10/01/2024",
        "expiry_date": "09/01/2034", "picture": "/9j/4AAQ", "signature": "iVBORw0K"
    });
    assert_eq!(published("passport", "passport", record), passport);
}

#[test]
fn an_insured_person_is_published() {
    let record = json!({"FSSNo": "C987464748983", "FullName": "MENSAH AMA",
        "BirthDate": "1990-05-21", "Sex": "F", "CardSerial": 12345, "Photo": "/9j/4AAQ"});
    let person = json!({"fss_no": "C987464748983", "full_name": "MENSAH AMA",
        "birth_date": "21/05/1990", "sex": "F", "card_serial": "12345", "photo": "/9j/4AAQ"});
    assert_eq!(published("ssnit", "ssnit", record), person);
}

#[test]
fn a_licence_is_published() {
    let record = json!({
        "Name": "AMA MENSAH", "DateOfBirth": "1990-05-21", "ProcessingCenter": "ACCRA",
        "ClassOfLicence": "B", "Nationality": "GHANAIAN", "DateOfIssue": "2024-01-10",
        "ExpiryDate": "09-Jan-34", "CertificateDate": "2012-03-04",
        "CertificateOfCompetence": "C1", "DriverImage": "/9j/4AAQ", "PIN": "AAA-21051990-12345"
    });
    let licence = json!({
        "name": "AMA MENSAH", "date_of_birth": "21/05/1990", "processing_center": "ACCRA",
        "class_of_licence": "B", "nationality": "GHANAIAN", "date_of_issue": "10/01/2024",
        "expiry_date": "09/01/2034", "certificate_date": "04/03/2012",
        "certificate_of_competence": "C1", "driver_image": "/9j/4AAQ", "pin": "AAA-21051990-12345"
    });
    assert_eq!(published("drivers_license", "drivers_license", record), licence);
}

#[test]
fn a_voter_is_published() {
    let record = json!({
        "PollingStation": "TOWN HALL", "VoterID": "9001332866", "Age": 36,
        "DateOfBirth": "1990-05-21", "Sex": "F", "RegDate": "2020-07-01", "Fullname": "AMA MENSAH",
        "Picture": "/9j/4AAQ", "Othernames": "AMA", "Surname": "MENSAH"
    });
    let voter = json!({
        "polling_station": "TOWN HALL", "voter_id": "9001332866", "age": "36",
        "date_of_birth": "21/05/1990", "sex": "F", "reg_date": "01/07/2020",
        "full_name": "AMA MENSAH", "picture": "/9j/4AAQ", "other_names": "AMA", "surname": "MENSAH"
    });
    assert_eq!(published("voters_card", "voters", record), voter);
}

#[test]
fn missing_fields_are_published_as_null() {
    for (identity, path, fields) in [
        ("passport", "passport", 13),
        ("ssnit", "ssnit", 6),
        ("drivers_license", "drivers_license", 11),
        ("voters_card", "voters", 10),
    ] {
        let known = little(identity, path, json!({"Other": "x"}));
        assert_eq!(known.len(), fields, "{identity}");
        assert!(known.iter().all(|(_, value)| value.is_null()), "{identity}");
    }
}

#[test]
fn phone_numbers_have_ghanas_calling_code() {
    let record = json!({"FirstName": "Ama", "Phone": "0241234567", "Email": "AMA@Example.com"});
    let _host = host().answer("POST", &format!("{BASE}/passport"), 200, found(record)).install();
    let entry = lookup(question("passport", "G0000575")).unwrap();
    assert_eq!(entry.phone.as_deref(), Some("+233241234567"));
    assert_eq!(entry.email.as_deref(), Some("ama@example.com"));
}
