use serde_json::{Value, json};
use tollhouse_plugin::identity::Image;
use tollhouse_plugin::identity_document::{Guest, Reading};
use tollhouse_plugin::testing::FakeHost;
use tollhouse_plugin::types::{Fault, FaultCategory};

use super::{DOJAH, PREMBLY, details, dojah_first, entity, found, host};
use crate::Nigeria;

fn photo() -> Image {
    Image { media_type: "image/png".into(), bytes: vec![0xff, 0xd8, 0xff] }
}

fn read(host: FakeHost, identity: &str) -> Result<Reading, Fault> {
    let _host = host.install();
    Nigeria::read(identity.into(), photo())
}

#[test]
fn prembly_reads_and_looks_up_in_one_request() {
    for (identity, path, name, record, number) in [
        (
            "drivers_license",
            "drivers_license/image",
            "frsc_data",
            json!({"licenseNo": " aad-2320 8212298", "firstName": "Ada"}),
            "AAD23208212298",
        ),
        (
            "drivers_license",
            "drivers_license/image",
            "data",
            json!({"driversLicense": "ABC12345YZ00", "firstname": "Ada"}),
            "ABC12345YZ00",
        ),
        (
            "passport",
            "national_passport_image",
            "data",
            json!({"number": "A00400000", "first_name": "Ada"}),
            "A00400000",
        ),
        (
            "passport",
            "national_passport_image",
            "data",
            json!({"currentPassportNumber": "B50000947", "currentFirstName": "Ada"}),
            "B50000947",
        ),
    ] {
        let url = format!("{PREMBLY}/{path}");
        let host = host().answer("POST", &url, 200, found(name, record)).install();
        let reading = Nigeria::read(identity.into(), photo()).unwrap();
        assert_eq!(reading.identifier, number);
        assert_eq!(details(&reading.entry)["first_name"], "Ada");
        assert_eq!(host.requests()[0].json(), json!({"image": "/9j/"}));
    }
}

#[test]
fn an_unreadable_document_is_invalid() {
    for words in ["Image is too dark", "Unable to read document"] {
        let response = json!({"status": false, "detail": words});
        let url = format!("{PREMBLY}/national_passport_image");
        let fault = read(host().answer("POST", &url, 400, response), "passport").unwrap_err();
        assert_eq!((fault.category, fault.field()), (FaultCategory::Invalid, Some("image")));
    }
    for texts in [
        json!([]),
        json!(null),
        json!([{"field_name": "Document Number", "value": "A1"}]),
        json!([{"field_name": "Document Number", "value": "ABC00400000"}]),
        json!([{"field_name": "Document Number", "value": "A0040O000"}]),
        json!([{"field_name": "Surname", "value": "Obi"}]),
    ] {
        let fault = analysed(entity(json!({"text_data": texts}))).unwrap_err();
        assert_eq!((fault.category, fault.field()), (FaultCategory::Invalid, Some("image")));
    }
    let url = format!("{DOJAH}/document/analysis");
    let host = dojah_first().answer("POST", &url, 400, json!({"error": "Invalid document image"}));
    assert_eq!(read(host, "passport").unwrap_err().field(), Some("image"));
}

fn analysed(response: Value) -> Result<Reading, Fault> {
    let url = format!("{DOJAH}/document/analysis");
    let host = dojah_first().answer("POST", &url, 200, response).answer(
        "GET",
        &format!("{DOJAH}/kyc/passport"),
        200,
        entity(json!({"first_name": "Ada"})),
    );
    read(host, "passport")
}

#[test]
fn a_reading_by_prembly_without_a_number_is_unavailable() {
    let response = found("data", json!({"first_name": "Ada"}));
    let url = format!("{PREMBLY}/national_passport_image");
    let host = host().setting("order", "prembly").answer("POST", &url, 200, response);
    assert_eq!(read(host, "passport").unwrap_err().code, "unexpected-answer");
}

#[test]
fn dojah_reads_and_then_looks_up_in_a_second_request() {
    let seen = entity(json!({
        "document_type": {"document_name": "Nigeria - ePassport", "document_country_code": "NGA"},
        "text_data": [
            {"field_name": "Document Class Code", "field_type": 0, "value": "P", "status": 1},
            {"field_name": "Document Number", "field_type": 2, "value": "a 00400000", "status": 1},
            {"field_name": "Surname", "value": "OBI", "status": 1},
            {"field_name": "Given Names", "value": "ADA NGOZI", "status": 1}
        ],
        "document_images": {}, "status": {"overall_status": 1}
    }));
    for (identity, lookup) in [
        ("passport", "kyc/passport?passport_number=A00400000&surname=OBI"),
        ("drivers_license", "kyc/dl?license_number=A00400000"),
    ] {
        let record = entity(json!({"first_name": "Ada"}));
        let host = dojah_first()
            .answer("POST", &format!("{DOJAH}/document/analysis"), 200, seen.clone())
            .answer("GET", &format!("{DOJAH}/{lookup}"), 200, record)
            .install();
        let reading = Nigeria::read(identity.into(), photo()).unwrap();
        assert_eq!(reading.identifier, "A00400000");
        assert_eq!(details(&reading.entry)["first_name"], "Ada");
        let sent = host.requests();
        assert_eq!(sent[0].json(), json!({"input_type": "base64", "imagefrontside": "/9j/"}));
        assert_eq!(sent[1].url, format!("{DOJAH}/{lookup}"));
        assert_eq!([sent[0].timeout_ms, sent[1].timeout_ms], [Some(12_000); 2]);
    }
}

#[test]
fn identity_types_without_documents_are_invalid() {
    for identity in ["bvn", "nin", "virtual_nin", "voters_card", "cac", "phone_number"] {
        for order in ["prembly", "dojah"] {
            let fault = read(host().setting("order", order), identity).unwrap_err();
            assert_eq!(fault.field(), Some("identity"), "{identity}");
        }
    }
}
