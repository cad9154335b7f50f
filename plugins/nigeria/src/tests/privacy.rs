use serde_json::{Value, json};
use tollhouse_plugin::identity::Image;
use tollhouse_plugin::testing::FakeHost;
use tollhouse_plugin::types::Fault;
use tollhouse_plugin::{identity_document, identity_face, identity_lookup};

use super::{DOJAH, PREMBLY, host, of_ada, question};
use crate::Nigeria;

const NUMBER: &str = "54651333604";
/// Private data. `text::short` of the SDK is not enough: it keeps short words and four digits.
const PRIVATE: [&str; 6] = ["ada", "Ada", "Obi", NUMBER, "1990", "4071"];

const CALLS: [(&str, &str); 7] = [
    ("POST", "/bvn"),
    ("POST", "/bvn_w_face"),
    ("POST", "/drivers_license/image"),
    ("GET", "/kyc/bvn/advance"),
    ("POST", "/kyc/bvn/verify"),
    ("POST", "/document/analysis"),
    ("GET", "/kyc/dl"),
];

fn base(method_and_path: &str) -> &str {
    let dojah = method_and_path.starts_with("/kyc") || method_and_path.starts_with("/document");
    if dojah { DOJAH } else { PREMBLY }
}

fn host_with(order: &str, add_response: impl Fn(FakeHost, &str, &str) -> FakeHost) -> FakeHost {
    let host = host().setting("order", order);
    CALLS.iter().fold(host, |host, (method, path)| {
        add_response(host, method, &format!("{}{path}", base(path)))
    })
}

/// Returns all that is visible of three failing calls: faults and log lines.
fn seen(host: FakeHost) -> String {
    let host = host.install();
    let image = Image { media_type: "image/png".into(), bytes: b"ada".to_vec() };
    let question = of_ada(question("bvn", NUMBER));
    let faults: [Option<Fault>; 3] = [
        <Nigeria as identity_lookup::Guest>::lookup(question.clone()).err(),
        <Nigeria as identity_face::Guest>::compare(question, image.clone()).err(),
        <Nigeria as identity_document::Guest>::read("drivers_license".into(), image).err(),
    ];
    assert!(faults.iter().all(Option::is_some), "{faults:?}");
    format!("{faults:?} {:?}", host.logs())
}

#[track_caller]
fn assert_silent(host: FakeHost) {
    let seen = seen(host);
    for private in PRIVATE {
        assert!(!seen.contains(private), "{private}: {seen}");
    }
}

#[test]
fn upstream_messages_are_never_forwarded_or_logged() {
    for order in ["prembly,dojah", "dojah,prembly"] {
        for word in ["", "not found", "invalid", "face", "image", "number", "balance"] {
            for status in [200, 400, 401, 402, 404, 409, 424, 500] {
                let words = format!("ada Obi {NUMBER} 1990 4071 {word}");
                let response = json!({"status": words, "detail": words, "message": words,
                    "response_code": words, "error": words, "code": words});
                assert_silent(host_with(order, |host, method, url| {
                    host.answer(method, url, status, response.clone())
                }));
            }
        }
    }
}

#[test]
fn unreadable_bodies_are_never_quoted() {
    for body in
        ["ada Obi 54651333604 1990", "{\"ada\":\"Obi\"}", "[\"ada\"]", "{\"entity\":\"ada\"}"]
    {
        for status in [200, 404] {
            assert_silent(host_with("prembly,dojah", |host, method, url| {
                host.answer_text(method, url, status, body)
            }));
        }
    }
}

/// The URL of a GET request contains the identifier.
#[test]
fn messages_of_host_faults_are_never_forwarded() {
    for code in ["timeout", "connect", "cut"] {
        let words = format!("no answer from https://api.dojah.io/?bvn={NUMBER} for ada 1990");
        let fault = Fault::unavailable("").with_code(code).with_detail("url", &words);
        let fault = Fault { message: words, ..fault };
        assert_silent(host_with("dojah,prembly", |host, method, url| {
            host.fault(method, url, fault.clone())
        }));
    }
}

#[test]
fn a_comparison_has_a_fixed_message() {
    let words = format!("ada Obi {NUMBER}");
    let face =
        json!({"status": true, "confidence": 99.9, "message": words, "response_code": words});
    let response: Value = json!({"status": true, "response_code": "00",
        "bvn_data": {"firstName": "Ada"}, "face_data": face});
    let _host = host().answer("POST", "/bvn_w_face", 200, response).install();
    let image = Image { media_type: "image/png".into(), bytes: vec![1] };
    let compared = <Nigeria as identity_face::Guest>::compare(question("bvn", NUMBER), image);
    assert_eq!(compared.unwrap().comparison.message, "Face match");
}
