use serde_json::{Value, json};
use tollhouse_plugin::identity::{Image, Question};
use tollhouse_plugin::identity_face::{Compared, Guest};
use tollhouse_plugin::testing::FakeHost;
use tollhouse_plugin::types::{Fault, FaultCategory};

use super::{DOJAH, PREMBLY, changed, details, dojah_first, entity, found, host, of_ada, question};
use crate::Nigeria;

fn selfie() -> Image {
    Image { media_type: "image/jpeg".into(), bytes: vec![0xff, 0xd8, 0xff] }
}

fn compare(host: FakeHost, question: Question) -> Result<Compared, Fault> {
    let _host = host.install();
    Nigeria::compare(question, selfie())
}

fn by_prembly(response: Value) -> Result<Compared, Fault> {
    let url = format!("{PREMBLY}/bvn_w_face");
    compare(host().answer("POST", &url, 200, response), question("bvn", "1"))
}

fn dojahs(response: Value) -> Result<Compared, Fault> {
    let url = format!("{DOJAH}/kyc/bvn/verify");
    let host = dojah_first().setting("order", "dojah").answer("POST", &url, 200, response);
    compare(host, question("bvn", "1"))
}

#[test]
fn requests_to_prembly_are_as_documented() {
    let face =
        json!({"status": true, "confidence": 99.9, "message": "Face Match", "response_code": "00"});
    for (identity, path, name, person) in [
        ("bvn", "bvn_w_face", "bvn_data", json!({})),
        ("nin", "nin_w_face", "nin_data", json!({})),
        ("drivers_license", "drivers_license/face", "frsc_data", json!({"dob": "1990-05-21"})),
        ("passport", "national_passport_with_face", "data", json!({"last_name": "Obi"})),
    ] {
        for (question, person) in
            [(question(identity, "N1"), json!({})), (of_ada(question(identity, "N1")), person)]
        {
            let response =
                changed(&found(name, json!({"firstName": "Ada"})), json!({"face_data": face}));
            let url = format!("{PREMBLY}/{path}");
            let host = host().answer("POST", &url, 200, response).install();
            let compared = Nigeria::compare(question, selfie()).unwrap();
            assert_eq!(details(&compared.entry)["first_name"], "Ada");
            let comparison = compared.comparison;
            assert_eq!((comparison.matches, comparison.confidence), (true, 9_990));
            let body = changed(&person, json!({"number": "N1", "image": "/9j/"}));
            assert_eq!(host.requests()[0].json(), body, "{identity}");
        }
    }
}

#[test]
fn comparisons_by_prembly_have_two_scales_and_two_places() {
    for (face, matches, hundredths) in [
        (json!({"status": true, "confidence": 99.9}), true, 9_990),
        (json!({"status": true, "confidence": 0.0404}), true, 404),
        (json!({"status": false, "confidence": 0.21}), false, 2_100),
        (json!({"status": false, "confidence": 21}), false, 2_100),
    ] {
        let beside =
            changed(&found("bvn_data", json!({"firstName": "Ada"})), json!({"face_data": face}));
        let within = found("data", json!({"firstName": "Ada", "face_data": face}));
        for response in [beside, within] {
            let value = by_prembly(response).unwrap().comparison;
            assert_eq!((value.matches, value.confidence), (matches, hundredths), "{face}");
            assert_eq!(value.message, if matches { "Face match" } else { "Face does not match" });
        }
    }
}

#[test]
fn a_selfie_without_a_face_is_invalid() {
    let none = json!({"status": false, "message": "No face detected on image"});
    let beside =
        changed(&found("bvn_data", json!({"firstName": "Ada"})), json!({"face_data": none}));
    let refused = json!({"status": false, "detail": "Face could not be detected"});
    for response in [beside, refused] {
        assert_eq!(by_prembly(response).unwrap_err().field(), Some("image"));
    }
    for words in ["No face detected", "Invalid selfie image"] {
        let url = format!("{DOJAH}/kyc/bvn/verify");
        let host = dojah_first().answer("POST", &url, 400, json!({"error": words}));
        assert_eq!(compare(host, question("bvn", "1")).unwrap_err().field(), Some("image"));
    }
}

#[test]
fn dojah_compares_by_number() {
    for register in ["bvn", "nin"] {
        let verification = json!({"confidence_value": 99.9, "match": true});
        let record = json!({"first_name": "Ada", "selfie_verification": verification});
        let url = format!("{DOJAH}/kyc/{register}/verify");
        let host = dojah_first().answer("POST", &url, 200, entity(record)).install();
        let compared = Nigeria::compare(of_ada(question(register, "N1")), selfie()).unwrap();
        assert_eq!(details(&compared.entry)["first_name"], "Ada");
        assert_eq!((compared.comparison.matches, compared.comparison.confidence), (true, 9_990));
        let sent = &host.requests()[0];
        assert_eq!(sent.json(), json!({register: "N1", "selfie_image": "/9j/"}));
        assert_eq!(sent.header("authorization"), Some("sk_dojah"));
    }
}

#[test]
fn comparisons_by_dojah_have_a_match_or_a_confidence() {
    for (value, matches, hundredths) in [
        (json!({"match": false, "confidence_value": 99.0}), false, 9_900),
        (json!({"match": true}), true, 0),
        (json!({"confidence_value": 90}), true, 9_000),
        (json!({"confidence_value": "89.99"}), false, 8_999),
        (json!({"match": true, "confidence_value": 0.9}), true, 90),
    ] {
        let record = json!({"first_name": "Ada", "selfie_verification:": value});
        let comparison = dojahs(entity(record)).unwrap().comparison;
        assert_eq!((comparison.matches, comparison.confidence), (matches, hundredths), "{value}");
    }
    for record in [json!({"first_name": "Ada"}), json!({"selfie_verification": {"match": true}})] {
        assert_eq!(dojahs(entity(record)).unwrap_err().code, "unexpected-answer");
    }
}

#[test]
fn dojah_compares_with_the_photo_of_a_document() {
    for (identity, path) in [("drivers_license", "kyc/dl"), ("passport", "kyc/passport")] {
        let photo = json!({"first_name": "Ada", "photo": "data:image/jpeg;base64,/9j/AA=="});
        let value = entity(json!({"selfie": {"match": true, "confidence_value": 97.25}}));
        let host = dojah_first()
            .answer("GET", &format!("{DOJAH}/{path}"), 200, entity(photo))
            .answer("POST", &format!("{DOJAH}/kyc/photoid/verify"), 200, value)
            .install();
        let compared = Nigeria::compare(of_ada(question(identity, "N1")), selfie()).unwrap();
        assert_eq!(details(&compared.entry)["image"], "/9j/AA==");
        assert_eq!((compared.comparison.matches, compared.comparison.confidence), (true, 9_725));
        let sent = host.requests();
        let body = json!({"selfie_image": "/9j/", "photoid_image": "/9j/AA==",
            "first_name": "Ada", "last_name": "Obi"});
        assert_eq!(sent[1].json(), body);
        assert_eq!([sent[0].timeout_ms, sent[1].timeout_ms], [Some(12_000); 2]);
    }
}

#[test]
fn without_a_photo_at_dojah_prembly_compares() {
    let face = json!({"face_data": {"status": true, "confidence": 99.9}});
    let prembly = changed(&found("frsc_data", json!({"firstName": "Ada"})), face);
    let dojah = entity(json!({"personal_details": {"firstname": "Ada"}}));
    let host = dojah_first().answer("GET", &format!("{DOJAH}/kyc/dl"), 200, dojah).answer(
        "POST",
        &format!("{PREMBLY}/drivers_license/face"),
        200,
        prembly,
    );
    assert!(compare(host, question("drivers_license", "N1")).unwrap().comparison.matches);
    let alone = host_of_dojah_alone();
    let fault = compare(alone, question("drivers_license", "N1")).unwrap_err();
    assert_eq!((fault.category, &*fault.code), (FaultCategory::Unavailable, "no-photo"));
}

fn host_of_dojah_alone() -> FakeHost {
    let dojah = entity(json!({"personal_details": {"firstname": "Ada"}}));
    host().setting("order", "dojah").answer("GET", &format!("{DOJAH}/kyc/dl"), 200, dojah)
}

#[test]
fn identity_types_without_faces_are_invalid() {
    for identity in ["virtual_nin", "voters_card", "cac", "phone_number"] {
        for order in ["prembly", "dojah"] {
            let host = host().setting("order", order);
            let fault = compare(host, question(identity, "1")).unwrap_err();
            assert_eq!(fault.field(), Some("identity"), "{identity}");
        }
    }
}
