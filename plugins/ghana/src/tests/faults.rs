use serde_json::{Value, json};
use tollhouse_plugin::log::Level;
use tollhouse_plugin::testing::FakeHost;
use tollhouse_plugin::types::FaultCategory::{Invalid, Misconfigured, NotFound, Unavailable};

use super::{BASE, compare, found, host, lookup, not_found, of_ama, question};

fn passport() -> String {
    format!("{BASE}/passport")
}

fn host_with(status: u16, response: Value) -> FakeHost {
    host().answer("POST", &passport(), status, response)
}

#[test]
fn errors_become_faults_and_log_lines() {
    let bare = || FakeHost::new().manifest(crate::MANIFEST);
    for (host, category, level) in [
        (host_with(200, not_found()), NotFound, None),
        (host_with(400, json!({"status": false, "detail": "Invalid number"})), Invalid, None),
        (host_with(500, json!({})), Unavailable, Some(Level::Warn)),
        (host().timeout("POST", &passport()), Unavailable, Some(Level::Warn)),
        (
            host_with(200, json!({"status": true, "response_code": "02"})),
            Unavailable,
            Some(Level::Warn),
        ),
        (
            host_with(200, json!({"status": true, "response_code": "03"})),
            Unavailable,
            Some(Level::Error),
        ),
        (host_with(401, json!({})), Misconfigured, Some(Level::Warn)),
        (bare(), Misconfigured, Some(Level::Warn)),
    ] {
        let host = host.install();
        let fault = lookup(question("passport", "G0000575")).unwrap_err();
        assert_eq!(fault.category, category);
        let levels: Vec<Level> = host.logs().iter().map(|log| log.0).collect();
        assert_eq!(levels, level.into_iter().collect::<Vec<_>>(), "{fault:?}");
    }
}

#[test]
fn a_selfie_without_a_face_is_invalid() {
    let mut response = found(json!({"FullName": "MENSAH AMA"}));
    response["face_data"] = json!({"status": false, "message": "No face detected"});
    let host = host().answer("POST", &format!("{BASE}/ssnit/face"), 200, response).install();
    assert_eq!(compare(question("ssnit", "C1")).unwrap_err().field(), Some("image"));
    assert!(host.logs().is_empty());
}

/// `text::short` of the SDK is not enough: it keeps short words and four digits.
#[test]
fn upstream_messages_are_never_forwarded_or_logged() {
    for word in ["", "not found", "invalid", "face", "image", "number"] {
        for status in [200, 400, 401, 404, 500] {
            let words = format!("ama Mensah C987464748983 1990 4071 {word}");
            let response = json!({"status": words, "detail": words, "message": words,
                "response_code": words, "face_data": {"message": words}});
            let host = host()
                .answer("POST", &format!("{BASE}/drivers_license"), status, response.clone())
                .answer("POST", &format!("{BASE}/ssnit/face"), status, response)
                .install();
            let looked_up = lookup(of_ama(question("drivers_license", "C987464748983")));
            let compared = compare(of_ama(question("ssnit", "C987464748983")));
            let faults = (looked_up.unwrap_err(), compared.unwrap_err());
            let seen = format!("{faults:?} {:?}", host.logs());
            for private in ["ama", "Ama", "Mensah", "C987464748983", "1990", "4071"] {
                assert!(!seen.contains(private), "{private}: {seen}");
            }
        }
    }
}
