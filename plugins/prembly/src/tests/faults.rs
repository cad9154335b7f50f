use serde_json::{Value, json};
use tollhouse_plugin::testing::FakeHost;
use tollhouse_plugin::types::FaultCategory::{
    Invalid, Misconfigured, NotFound, Refused, Unavailable,
};
use tollhouse_plugin::types::{Fault, FaultCategory};

use super::{BVN, call_on, call_with_response, host};
use crate::NO_CREDIT;

fn fault_of(host: FakeHost) -> Fault {
    call_on(host, &json!({"number": "54651333604"})).unwrap_err()
}

#[track_caller]
fn assert_fault(status: u16, response: Value, category: FaultCategory, code: &str) {
    let fault = call_with_response(status, response.clone()).unwrap_err();
    assert_eq!((fault.category, &*fault.code), (category, code), "{status} {response}");
}

#[test]
fn codes_outweigh_statuses() {
    let data = json!({"firstName": "Ada"});
    for (status, response, category, code) in [
        // `status` may be true.
        (200, json!({"status": true, "response_code": "01", "data": data}), NotFound, ""),
        (200, json!({"status": false, "response_code": "01"}), NotFound, ""),
        (200, json!({"status": false, "response_code": 1}), NotFound, ""),
        (404, json!({"status": false, "response_code": "01"}), NotFound, ""),
        (400, json!({"status": false, "response_code": "01"}), NotFound, ""),
        (200, json!({"status": true, "response_code": "02"}), Unavailable, "source-unavailable"),
        (400, json!({"status": false, "response_code": "02"}), Unavailable, "source-unavailable"),
        (200, json!({"status": false, "response_code": "03"}), Unavailable, NO_CREDIT),
        (403, json!({"status": false, "response_code": "03"}), Unavailable, NO_CREDIT),
        (500, json!({"status": false, "response_code": "03"}), Unavailable, NO_CREDIT),
        (402, json!({"status": false}), Unavailable, NO_CREDIT),
        (500, json!({"status": false, "response_code": "01"}), Unavailable, "http-500"),
        (200, json!({"status": false, "response_code": "09"}), Refused, "09"),
        (200, json!({"status": false, "response_code": "54651333604"}), Refused, ""),
        (200, json!({"status": false, "response_code": "Ada"}), Refused, ""),
        (200, json!({"status": false}), Refused, ""),
    ] {
        assert_fault(status, response, category, code);
    }
}

#[test]
fn without_a_code_the_message_decides() {
    for (status, words, category) in [
        (200, json!("Record not found"), NotFound),
        (404, json!("No record found for this number"), NotFound),
        (400, json!("Invalid number"), Invalid),
        (422, json!({"number": ["This field is required."]}), Invalid),
        (200, json!("Not today"), Refused),
    ] {
        for key in ["detail", "message"] {
            assert_fault(status, json!({"status": false, key: words}), category, "");
        }
    }
}

#[test]
fn faults_name_the_field_at_fault() {
    let blamed = |body: Value, words: &str| {
        let response = json!({"status": false, "detail": words});
        call_on(host().answer("POST", BVN, 400, response), &body)
            .unwrap_err()
            .field()
            .map(str::to_owned)
    };
    let number = json!({"number": "1"});
    let face = json!({"number": "1", "image": "/9j/"});
    for (body, words, field) in [
        (&number, "Invalid number", Some("identifier")),
        (&number, "Face not found", None),
        (&face, "Invalid number", Some("identifier")),
        (&face, "Face not found on image", Some("image")),
        (&face, "Could not read the photo", Some("image")),
        (&json!({"image": "/9j/"}), "Bad request", Some("image")),
    ] {
        assert_eq!(blamed(body.clone(), words).as_deref(), field, "{words}");
    }
}

#[test]
fn failures_of_prembly_are_unavailable() {
    for status in [408, 429, 500, 502, 503] {
        assert_fault(status, json!({"status": false}), Unavailable, &format!("http-{status}"));
    }
    for (host, code) in [
        (host().timeout("POST", BVN), "timeout"),
        (host().no_connection("POST", BVN), "connect"),
        (host().cut("POST", BVN), "cut"),
        (host().answer_text("POST", BVN, 502, "<html>"), "http-502"),
        (host().answer_text("POST", BVN, 200, "<html>"), "unexpected-answer"),
        (host().answer_text("POST", BVN, 200, ""), "unexpected-answer"),
        (host().answer_text("POST", BVN, 404, "<html>"), "unexpected-answer"),
        // From a server without this path.
        (host().answer("POST", BVN, 404, json!({"detail": "Not found."})), "unexpected-answer"),
        (host().answer("POST", BVN, 200, json!({})), "unexpected-answer"),
        (host().answer("POST", BVN, 200, json!([])), "unexpected-answer"),
    ] {
        let fault = fault_of(host);
        assert_eq!((fault.category, &*fault.code), (Unavailable, code));
        assert!(fault.retryable);
    }
}

#[test]
fn a_success_without_a_record_is_not_found_or_unavailable() {
    for (verification, category, code) in [
        (json!("NOT-VERIFIED"), NotFound, ""),
        (json!("PENDING"), Unavailable, "unexpected-answer"),
        (json!(null), Unavailable, "unexpected-answer"),
    ] {
        for data in [json!(null), json!({}), json!([]), json!("x"), json!({"face_data": {}})] {
            let verification = json!({"status": verification});
            let response = json!({"status": true, "response_code": "00", "data": data, "verification": verification});
            assert_fault(200, response, category, code);
        }
    }
}

#[test]
fn rejected_credentials_are_misconfigured() {
    for status in [401, 403] {
        for body in ["{\"detail\":\"Invalid key\"}", "no"] {
            let fault = fault_of(host().answer_text("POST", BVN, status, body));
            assert_eq!((fault.category, fault.code), (Misconfigured, format!("http-{status}")));
        }
    }
    let bare = FakeHost::new().setting("prembly_url", "https://prembly.test");
    for host in [bare, host().setting("prembly_url", "")] {
        assert_eq!(fault_of(host).category, Misconfigured);
    }
}

#[test]
fn upstream_messages_are_never_forwarded() {
    for word in ["", "not found", "invalid", "face", "image"] {
        for status in [200, 400, 401, 404, 500] {
            let words = format!("ada obi 54651333604 1990 {word}");
            let response =
                json!({"status": words, "detail": words, "message": words, "response_code": words});
            let body = json!({"number": "54651333604", "image": "/9j/"});
            let fault = call_on(host().answer("POST", BVN, status, response), &body).unwrap_err();
            let fault = format!("{fault:?}");
            for private in ["ada", "obi", "54651333604", "1990"] {
                assert!(!fault.contains(private), "{fault}");
            }
        }
    }
    let upstream = Fault::unavailable("ada at https://prembly.test").with_detail("url", "ada");
    let fault = format!("{:?}", fault_of(host().fault("POST", BVN, upstream)));
    assert!(!fault.contains("ada"), "{fault}");
}
