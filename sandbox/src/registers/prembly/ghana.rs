//! Ghana's registers in Prembly's format.

use serde_json::{Value, json};

use crate::registers::{days, people::Person};

pub(super) fn passport(person: &Person) -> Value {
    json!({
        "PassportNo": person.number,
        "FirstName": person.first_name,
        "MiddleName": person.middle_name,
        "LastName": person.last_name,
        "Nationality": "GHANAIAN",
        "DateOfBirth": days::iso(person.born),
        "Gender": person.sex(),
        "PlaceOfBirth": person.origin.2.to_uppercase(),
        "PlaceOfIssue": "ACCRA",
        "IssueDate": days::iso(person.issued),
        "ExpiryDate": days::iso(person.expiry_date(10)),
        "Picture": person.photo(),
        "Signature": "",
    })
}

pub(super) fn ssnit(person: &Person) -> Value {
    json!({
        "FSSNo": person.number,
        "FullName": person.full_name().to_uppercase(),
        "BirthDate": days::slashed(person.born),
        "Sex": person.gender(),
        "CardSerial": person.digits("card", 9),
        "Photo": person.photo(),
    })
}

pub(super) fn license(person: &Person) -> Value {
    let certificate = person.digits("certificate", 8);
    json!({
        "Name": person.full_name().to_uppercase(),
        "DateOfBirth": days::slashed(person.born),
        "ProcessingCenter": person.home.2.to_uppercase(),
        "ClassOfLicence": person.pick("class", &["A", "B", "C"]),
        "Nationality": "GHANAIAN",
        "DateOfIssue": days::slashed(person.issued),
        "ExpiryDate": days::slashed(person.expiry_date(6)),
        "CertificateDate": days::slashed(person.issued),
        "CertificateOfCompetence": certificate,
        "DriverImage": person.photo(),
        "PIN": person.number,
    })
}

pub(super) fn voter(person: &Person) -> Value {
    json!({
        "PollingStation": format!("{} MARKET", person.home.2.to_uppercase()),
        "VoterID": person.number,
        "Age": person.age(),
        "DateOfBirth": days::iso(person.born),
        "Sex": person.sex(),
        "RegDate": days::iso(person.issued),
        "Fullname": person.full_name().to_uppercase(),
        "Picture": person.photo(),
        "Othernames": format!("{} {}", person.first_name, person.middle_name).to_uppercase(),
        "Surname": person.last_name.to_uppercase(),
    })
}
