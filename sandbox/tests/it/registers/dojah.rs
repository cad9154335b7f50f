use base64::{Engine, prelude::BASE64_STANDARD};
use reqwest::Method;
use serde_json::{Value, json};

use super::{assert_keys, dojah, send};
use crate::world::World;

const BVN: &str = "bvn first_name middle_name last_name date_of_birth phone_number1 phone_number2 registration_date \
    enrollment_bank enrollment_branch email gender level_of_account lga_of_origin lga_of_residence marital_status \
    name_on_card nationality nin residential_address state_of_origin state_of_residence title watch_listed image";
const NIN: &str = "nin title birth_country birth_date birth_lga birth_state central_id educational_level email \
    employment_status first_name gender height maiden_name marital_status middle_name nationality nok_address_1 \
    nok_address_2 nok_first_name nok_lga nok_state nok_surname nok_town origin_lga origin_place origin_state picture \
    profession religion residence_address residence_lga residence_state residence_status residence_town signature \
    spoken_language surname telephone";
const VNIN: &str = "vnin firstname middlename surname gender dateOfBirth mobile photo user_id";
const PASSPORT: &str = "passport_number surname first_name other_names gender date_of_birth date_of_issue expiry_date \
    issue_place document_type photo";
const VOTER: &str = "full_name voter_identification_number gender occupation time_of_registration state local_government \
    registration_area_ward polling_unit polling_unit_code";
const PHONE: &str = "nin title firstName middleName lastName gender birthDate birthState birthLga msisdn educationalLevel \
    emplymentStatus height lga maritalStatus nspokenLang ospokenlang picture profession religion residenceLga \
    residenceState residenceStatus residenceTown selfOriginLga selfOriginPlace selfOriginState state status";
const GH_LICENSE: &str = "id full_name date_of_birth issue_date expiry_date certificate_date pin processing_center picture \
    is_full_name_match is_date_of_birth_match status";
const GH_PASSPORT: &str = "id first_name middle_name last_name gender date_of_birth issue_date expiry_date place_of_birth \
    place_of_issue picture is_first_name_match is_middle_name_match is_last_name_match is_date_of_birth_match status";
const GH_SSNIT: &str = "id full_name card_serial date_of_birth gender picture is_full_name_match is_date_of_birth_match status";
const GH_VOTER: &str = "id full_name date_of_birth gender picture polling_station registration_date is_full_name_match status";

async fn get(world: &World, path: &str) -> (u16, Value) {
    send(dojah(world, Method::GET, &format!("/api/v1{path}"))).await
}

async fn entity(world: &World, path: &str) -> Value {
    let (status, body) = get(world, path).await;
    assert_eq!(status, 200, "{path}: {body}");
    body["entity"].clone()
}

/// Returns a picture in base64.
async fn picture(world: &World, name: &str) -> String {
    let path = format!("/images/{name}.jpg");
    let response = world.request(Method::GET, &path).send().await.unwrap();
    BASE64_STANDARD.encode(response.bytes().await.unwrap())
}

#[tokio::test]
async fn entities_have_the_documented_keys() {
    let world = World::new().await;
    let advance = format!("{BVN} status");
    for (path, keys) in [
        ("/kyc/bvn?bvn=22222222222", "bvn first_name"),
        ("/kyc/bvn/basic?bvn=22222222222", "bvn first_name last_name mobile dob formatted_dob"),
        ("/kyc/bvn/full?bvn=22222222222", BVN),
        ("/kyc/bvn/advance?bvn=22222222222", &advance),
        ("/kyc/nin?nin=70123456789", NIN),
        ("/kyc/vnin?vnin=AA1234567890123B", VNIN),
        ("/kyc/dl?license_number=AAD23208212298", "personal_details"),
        ("/kyc/passport?passport_number=A00400000&surname=any", PASSPORT),
        ("/kyc/vin?vin=987f545AJ67890", VOTER),
        ("/kyc/phone_number?phone_number=08082838283", PHONE),
        (
            "/kyc/phone_number/basic?phone_number=08082838283",
            "firstName middleName lastName gender nationality msisdn birthDate",
        ),
        (
            "/kyc/cac?rc_number=092932&company_name=any",
            "rc_number company_name address date_of_registration",
        ),
        ("/gh/kyc/dl?id=V0004512", GH_LICENSE),
        ("/gh/kyc/passport?id=G0000575", GH_PASSPORT),
        ("/gh/kyc/ssnit?id=C987464748983", GH_SSNIT),
        ("/gh/kyc/voter?id=9001332866&is_new_id=true", GH_VOTER),
    ] {
        assert_keys(&entity(&world, path).await, keys, path);
    }
}

#[tokio::test]
async fn records_have_dojahs_formats() {
    let world = World::new().await;
    let bvn = entity(&world, "/kyc/bvn/full?bvn=22222222222").await;
    assert_eq!(bvn["date_of_birth"], "28-Jun-1988");
    let bank = bvn["enrollment_bank"].as_str().unwrap();
    assert!(bank.len() == 3 && bank.bytes().all(|b| b.is_ascii_digit()), "{bank}");
    assert!(bvn["phone_number1"].as_str().unwrap().starts_with("080"), "{bvn}");
    let nin = entity(&world, "/kyc/nin?nin=70123456789").await;
    assert_eq!(nin["birth_date"], "10-06-1993");
    let license = entity(&world, "/kyc/dl?license_number=AAD23208212298").await;
    assert_eq!(license["personal_details"]["birth_date"], "21/12/1999");
    let passport = entity(&world, "/kyc/passport?passport_number=A00400000").await;
    assert_eq!(passport["date_of_birth"], "1980-12-22");

    let sent = "/gh/kyc/passport?id=G0000575&first_name=akua&date_of_birth=1987-04-12&last_name=x";
    let compared = entity(&world, sent).await;
    for (key, matches) in [
        ("is_first_name_match", true),
        ("is_date_of_birth_match", true),
        ("is_last_name_match", false),
        ("is_middle_name_match", false),
    ] {
        assert_eq!(compared[key], matches, "{key}");
    }
}

#[tokio::test]
async fn selfies_are_compared_with_the_record() {
    let world = World::new().await;
    let images = [("match-1", true, 90.0..100.0), ("mismatch-1", false, 0.0..50.0)];
    for (name, matches, confidence) in images {
        let selfie = picture(&world, name).await;
        for (path, parameter, number) in [
            ("/api/v1/kyc/bvn/verify", "bvn", "22222222222"),
            ("/v1/kyc/bvn/verify", "bvn", "22222222222"),
            ("/api/v1/kyc/nin/verify", "nin", "70123456789"),
            ("/api/v1/kyc/vnin/verify", "vnin", "AA1234567890123B"),
        ] {
            let request_body = json!({ parameter: number, "selfie_image": selfie });
            let request = dojah(&world, Method::POST, path).json(&request_body);
            let (status, body) = send(request).await;
            assert_eq!((status, &body["entity"][parameter]), (200, &json!(number)), "{path}");
            let found = &body["entity"]["selfie_verification"];
            assert_eq!(found["match"], matches, "{path}");
            assert!(confidence.contains(&found["confidence_value"].as_f64().unwrap()), "{found}");
        }
        let card = picture(&world, "document-22222222222").await;
        let request_body =
            json!({ "selfie_image": selfie, "photoid_image": card, "first_name": "Ada" });
        let request = dojah(&world, Method::POST, "/api/v1/kyc/photoid/verify").json(&request_body);
        let (status, body) = send(request).await;
        assert_eq!((status, &body["entity"]["selfie"]["match"]), (200, &json!(matches)));
    }
}

#[tokio::test]
async fn invalid_requests_to_dojah_are_refused_with_a_reason() {
    let world = World::new().await;
    for (path, status, error) in [
        ("/kyc/bvn/full", 400, "bvn is required"),
        ("/kyc/bvn/full?bvn=", 400, "bvn is required"),
        ("/kyc/bvn/full?bvn=2222", 400, "bvn is not valid"),
        ("/kyc/vnin?vnin=AA123456789012B", 400, "vnin is not valid"),
        ("/kyc/nin?nin=22222220000", 404, "Result Not Found"),
        ("/gh/kyc/passport?id=G0000000", 404, "Result Not Found"),
    ] {
        assert_eq!(get(&world, path).await, (status, json!({ "error": error })), "{path}");
    }
    let selfie = picture(&world, "match-1").await;
    let (prefixed, faceless) =
        (format!("data:image/jpeg;base64,{selfie}"), picture(&world, "noface-1").await);
    for (path, body, error) in [
        ("/kyc/bvn/verify", json!({ "selfie_image": selfie }), "bvn is required"),
        ("/kyc/bvn/verify", json!({ "bvn": "22222222222" }), "selfie_image is required"),
        (
            "/kyc/bvn/verify",
            json!({ "bvn": "22222222222", "selfie_image": prefixed }),
            "selfie_image is not an image in base64",
        ),
        (
            "/kyc/bvn/verify",
            json!({ "bvn": "22222222222", "selfie_image": faceless }),
            "No face was detected in selfie_image",
        ),
        (
            "/document/analysis",
            json!({ "input_type": "url", "imagefrontside": selfie }),
            "input_type must be url or base64, and match imagefrontside",
        ),
        ("/document/analysis", json!({ "input_type": "url" }), "imagefrontside is required"),
    ] {
        let request = dojah(&world, Method::POST, &format!("/api/v1{path}")).json(&body);
        assert_eq!(send(request).await, (400, json!({ "error": error })), "{path}");
    }
    let path = "/dojah/api/v1/kyc/bvn/full?bvn=22222222222";
    for headers in [
        vec![],
        vec![("Authorization", "key")],
        vec![("AppId", "app")],
        vec![("Authorization", "Bearer key"), ("AppId", "app")],
    ] {
        let bare = world.request(Method::GET, path);
        let request =
            headers.iter().fold(bare, |request, (name, value)| request.header(*name, *value));
        assert_eq!(send(request).await.0, 401, "{headers:?}");
    }
}

#[tokio::test]
async fn a_picture_without_a_document_has_no_text() {
    let world = World::new().await;
    for (name, overall) in [("document-A00400000", 1), ("match-1", 0)] {
        let front = picture(&world, name).await;
        let request_body = json!({ "input_type": "base64", "imagefrontside": front });
        let request = dojah(&world, Method::POST, "/api/v1/document/analysis").json(&request_body);
        let (status, body) = send(request).await;
        assert_eq!(status, 200, "{body}");
        let keys = "document_type document_images text_data status";
        assert_keys(&body["entity"], keys, name);
        assert_eq!(body["entity"]["status"]["overall_status"], overall);
        assert_eq!(body["entity"]["text_data"].as_array().unwrap().is_empty(), overall == 0);
    }
}
