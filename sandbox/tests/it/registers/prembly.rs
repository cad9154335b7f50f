use reqwest::Method;
use serde_json::{Value, json};

use super::{assert_keys, prembly, send};
use crate::world::World;

const BVN: &str = "bvn firstName middleName lastName dateOfBirth registrationDate enrollmentBank enrollmentBranch email gender \
    levelOfAccount lgaOfOrigin lgaOfResidence maritalStatus nameOnCard nationality nin phoneNumber1 phoneNumber2 \
    residentialAddress stateOfOrigin stateOfResidence title watchListed base64Image";
const BVN_BASIC: &str =
    "bvn firstName middleName lastName dateOfBirth gender phoneNumber1 watchListed";
const REGISTER: &str = "birthcountry birthdate birthlga birthstate centralID documentno educationallevel email firstname gender \
    maidenname maritalstatus middlename nationality nin nok_address1 nok_address2 nok_firstname nok_lga nok_middlename \
    nok_postalcode nok_state nok_surname nok_town nspokenlang ospokenlang pfirstname photo pmiddlename profession psurname \
    religion residence_address residence_town residence_lga residence_state residencestatus self_origin_lga \
    self_origin_place self_origin_state signature surname telephoneno title trackingId userid";
const NIN: &str = "emplymentstatus heigth vnin";
const PHONE: &str = "employmentstatus height othername state place";
const NIN_BASIC: &str = "nin firstname middlename surname birthdate gender telephoneno photo";
const LICENSE: &str = "licenseNo firstName middleName lastName gender birthDate issuedDate expiryDate stateOfIssue photo uuid";
const LICENSE_ADVANCE: &str = "driversLicense name gender mother_name height_in_metres dob tin issued_date validity lga_of_origin \
    face_mark blood_group state_of_origin nationality glasses disability nin phone email nok_phone address_line1 \
    address_line2 city state postal_code photo";
const LICENSE_V2: &str = "driversLicense firstname middlename lastname gender birthdate issuedDate expiryDate stateOfIssue photo";
const PASSPORT: &str = "number reference_id first_name middle_name last_name dob gender issued_date expiry_date issued_at mobile \
    photo signature";
const PASSPORT_V2: &str = "currentFirstName currentMiddleName currentLastName currentGender currentDateOfBirthLabel \
    currentDateOfBirth currentPassportNumber currentPassportType currentPlaceOfBirth successful";
const VOTER: &str = "vin fullName first_name last_name gender occupation date_of_birth phone_number address state lga \
    registrationAreaWard pollingUnit pollingUnitCode timeOfRegistration photo";
const COMPANY: &str = "rc_number company_name company_status company_address branchAddress state city lga email_address \
    date_of_registration directors";
const GH_PASSPORT: &str = "PassportNo FirstName MiddleName LastName Nationality DateOfBirth Gender PlaceOfBirth PlaceOfIssue \
    IssueDate ExpiryDate Picture Signature";
const GH_SSNIT: &str = "FSSNo FullName BirthDate Sex CardSerial Photo";
const GH_LICENSE: &str = "Name DateOfBirth ProcessingCenter ClassOfLicence Nationality DateOfIssue ExpiryDate CertificateDate \
    CertificateOfCompetence DriverImage PIN";
const GH_VOTER: &str =
    "PollingStation VoterID Age DateOfBirth Sex RegDate Fullname Picture Othernames Surname";

async fn look_up(world: &World, path: &str, body: &Value) -> Value {
    let (status, response) = send(prembly(world, &format!("/verification/{path}"), body)).await;
    assert_eq!((status, &response["response_code"]), (200, &json!("00")), "{path}: {response}");
    assert_eq!(response["verification"]["status"], "VERIFIED", "{path}");
    response
}

#[tokio::test]
async fn records_have_the_documented_keys() {
    let world = World::new().await;
    let license = "AAD23208212298";
    let [nin, phone] = [NIN, PHONE].map(|more| format!("{REGISTER} {more}"));
    let verified = format!("{LICENSE} verified message");
    let cases = [
        ("bvn_validation", "number", "54651333604", "data", BVN_BASIC),
        ("bvn", "number", "54651333604", "data", BVN),
        ("vnin-basic", "number", "12345678909", "nin_data", NIN_BASIC),
        ("vnin", "number_nin", "12345678909", "nin_data", &nin),
        ("vnin", "number_nin", "AA1234567890123B", "nin_data", &nin),
        ("nin_wo_face", "number", "AA1234567890123B", "nin_data", &nin),
        ("drivers_license", "number", license, "frsc_data", LICENSE),
        ("drivers_license/basic", "number", license, "frsc_data", &verified),
        ("drivers_license/advance", "number", license, "frsc_data", LICENSE_ADVANCE),
        ("drivers_license/advance/v2", "number", "ABC12345YZ00", "frsc_data", LICENSE_V2),
        ("national_passport", "number", "A00400000", "data", PASSPORT),
        ("national_passport_v2", "number", "B50000947", "data", PASSPORT_V2),
        ("voters_card", "number", "987f545AJ67890", "data", VOTER),
        ("cac", "rc_number", "092932", "data", COMPANY),
        ("phone_number/advance", "number", "08082838283", "data", &phone),
        (
            "phone_number",
            "number",
            "08082838283",
            "data",
            "firstName middlename surname phoneNumber dateOfBirth",
        ),
        ("gh/passport", "number", "G0000575", "data", GH_PASSPORT),
        ("gh/ssnit", "number", "C987464748983", "data", GH_SSNIT),
        ("gh/drivers_license", "number", "V0004512", "data", GH_LICENSE),
        ("gh/voters", "number", "9001332866", "data", GH_VOTER),
    ];
    for (path, parameter, number, key, keys) in cases {
        let response = look_up(&world, path, &json!({ parameter: number })).await;
        assert_eq!(response["status"], true, "{path}");
        assert_keys(&response[key], keys, path);
        let keys = format!("status detail response_code verification {key}");
        assert_keys(&response, &keys, path);
    }
    let companies = look_up(&world, "cac/advance", &json!({ "rc_number": 92_932 })).await;
    assert_keys(
        &companies["data"][0],
        &format!("{COMPANY} registrationDate address"),
        "cac/advance",
    );
}

#[tokio::test]
async fn every_register_has_its_own_date_format() {
    let world = World::new().await;
    for (path, parameter, number, at, day) in [
        ("bvn", "number", "54651333604", "/data/dateOfBirth", json!("06-May-1993")),
        ("vnin", "number", "12345678909", "/nin_data/birthdate", json!("17-02-1991")),
        (
            "drivers_license",
            "number",
            "AAD23208212298",
            "/frsc_data/birthDate",
            json!("1999-12-21"),
        ),
        (
            "drivers_license/advance",
            "number",
            "AAD23208212298",
            "/frsc_data/dob",
            json!("21/12/1999"),
        ),
        (
            "drivers_license/advance/v2",
            "number",
            "ABC12345YZ00",
            "/frsc_data/birthdate",
            json!("01-01-1990"),
        ),
        ("national_passport", "number", "A00400000", "/data/dob", json!("1980-12-22")),
        (
            "national_passport_v2",
            "number",
            "B50000947",
            "/data/currentDateOfBirthLabel",
            json!("21/08/1994"),
        ),
        (
            "national_passport_v2",
            "number",
            "B50000947",
            "/data/currentDateOfBirth",
            json!(777_427_200_000_i64),
        ),
        ("gh/ssnit", "number", "C987464748983", "/data/BirthDate", json!("03/10/1979")),
    ] {
        let response = look_up(&world, path, &json!({ parameter: number })).await;
        assert_eq!(response.pointer(at), Some(&day), "{path}");
    }
    let passport = look_up(&world, "national_passport", &json!({ "number": "A1" })).await;
    let photo = passport["data"]["photo"].as_str().unwrap();
    assert!(photo.starts_with("data:image/jpeg;base64,/9j/"), "{photo:.40}");
}

#[tokio::test]
async fn old_paths_have_the_old_names() {
    let world = World::new().await;
    for (prefix, bvn, voter) in [
        ("/verification", "data", "data"),
        ("/api/v2/biometrics/merchant/data/verification", "bvn_data", "vc_data"),
        ("/identitypass/verification", "bvn_data", "vc_data"),
    ] {
        for (path, key) in [("bvn", bvn), ("voters_card", voter), ("drivers_license", "frsc_data")]
        {
            let request_body = json!({ "number": "54651333604" });
            let (_, response) =
                send(prembly(&world, &format!("{prefix}/{path}"), &request_body)).await;
            assert!(response[key].is_object(), "{prefix}/{path}: {response}");
        }
    }
}

#[tokio::test]
async fn faces_are_compared_with_the_record() {
    let world = World::new().await;
    let image = |name: &str| format!("{}/images/{name}-1.jpg", world.simulators.url());
    for (path, number, key, scale) in [
        ("bvn_w_face", "54651333604", "bvn_data", 1.0),
        ("nin_w_face", "12345678909", "nin_data", 0.01),
        ("nin", "12345678909", "nin_data", 0.01),
        ("drivers_license/face", "AAD23208212298", "frsc_data", 1.0),
        ("drivers_license_with_face", "AAD23208212298", "frsc_data", 1.0),
        ("national_passport_with_face", "A00400000", "data", 1.0),
        ("gh/ssnit/face", "C987464748983", "data", 0.01),
    ] {
        for (name, status, percent) in [("match", true, 99.9), ("mismatch", false, 4.04)] {
            let request_body = json!({ "number": number, "image": image(name) });
            let response = look_up(&world, path, &request_body).await;
            assert!(response[key].is_object(), "{path}");
            let face = &response["face_data"];
            assert_keys(face, "status response_code message confidence", path);
            assert_eq!(face["status"], status, "{path} {name}");
            let confidence = face["confidence"].as_f64().unwrap();
            assert!((confidence - percent * scale).abs() < 1e-9, "{path} {name}: {confidence}");
        }
    }
}

#[tokio::test]
async fn two_pictures_are_compared() {
    let world = World::new().await;
    let image = |name: &str| format!("{}/images/{name}.jpg", world.simulators.url());
    for path in ["/api/v2/biometrics/merchant/face/comparison", "/verification/face/comparison"] {
        for (one, two, status) in [
            ("match-1", "document-2", true),
            ("document-2", "document-2", true),
            ("document-2", "document-3", false),
            ("match-1", "mismatch-1", false),
            ("match-1", "noface-1", false),
        ] {
            let request_body = json!({ "image_one": image(one), "image_two": image(two) });
            let (got, face) = send(prembly(&world, path, &request_body)).await;
            assert_eq!((got, &face["status"]), (200, &json!(status)), "{one} {two}");
            assert_keys(&face, "status response_code message confidence", path);
        }
    }
    let path = "/api/v2/biometrics/merchant/face/liveliness_check";
    for (name, alive) in [("match-1", true), ("noface-1", false)] {
        let (_, check) = send(prembly(&world, path, &json!({ "image": image(name) }))).await;
        assert_eq!(check["status"], alive, "{check}");
        assert!(check["confidence_in_percentage"].is_number());
    }
}

#[tokio::test]
async fn invalid_requests_to_prembly_are_refused_with_a_reason() {
    let world = World::new().await;
    let (bvn, face) = ("/verification/bvn", "/verification/bvn_w_face");
    for (path, body, detail) in [
        (bvn, json!({}), "number is required"),
        (bvn, json!({ "number": " " }), "number is required"),
        (bvn, json!({ "number": "123" }), "number is not valid: 123"),
        (bvn, json!([]), "The body is not a JSON object"),
        ("/verification/vnin", json!({}), "number_nin or number is required"),
        ("/verification/cac", json!({ "number": "1" }), "rc_number is required"),
        (face, json!({ "number": "22222222222" }), "image is required"),
        (
            face,
            json!({ "number": "22222222222", "image": "x" }),
            "image is neither the address of an image nor one in base64",
        ),
        ("/verification/national_passport_image", json!({}), "image is required"),
    ] {
        let (status, refused) = send(prembly(&world, path, &body)).await;
        assert_eq!((status, &refused["status"]), (400, &json!(false)), "{path}: {refused}");
        assert_eq!(refused["detail"], detail);
    }
    let bare = world.request(Method::POST, "/prembly/verification/bvn");
    for request in [bare.try_clone().unwrap(), bare.header("x-api-key", "")] {
        let (status, refused) = send(request.json(&json!({ "number": "22222222222" }))).await;
        assert_eq!((status, &refused["status"]), (401, &json!(false)));
    }
}
