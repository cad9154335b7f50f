use serde_json::{Value, json};
use tollhouse_plugin::identity::Question;
use tollhouse_plugin::testing::Sent;

use super::{BASE, compare, found, host, lookup, not_found, of_ama, question};

fn sent(path: &str, question: Question) -> Value {
    let url = format!("{BASE}/{path}");
    let host = host().answer("POST", &url, 200, found(json!({"x": 1}))).install();
    lookup(question).unwrap();
    let sent = host.requests().remove(0);
    assert_eq!((&*sent.method, &*sent.url), ("POST", &*url));
    assert_eq!(sent.header("x-api-key"), Some("sk_prembly"));
    assert_eq!(sent.header("app-id"), Some("app-p"));
    sent.json()
}

#[test]
fn requests_have_the_number_and_for_a_licence_the_birth_date() {
    for (identity, path, alone, of_somebody) in [
        ("passport", "passport", json!({"number": "N1"}), json!({"number": "N1"})),
        ("ssnit", "ssnit", json!({"number": "N1"}), json!({"number": "N1"})),
        (
            "drivers_license",
            "drivers_license",
            json!({"number": "N1"}),
            json!({"number": "N1", "dob": "1990-05-21"}),
        ),
        (
            "voters_card",
            "voters",
            json!({"number": "N1", "type": "MAIN"}),
            json!({"number": "N1", "type": "MAIN"}),
        ),
    ] {
        assert_eq!(sent(path, question(identity, "N1")), alone, "{identity}");
        assert_eq!(sent(path, of_ama(question(identity, "N1"))), of_somebody, "{identity}");
    }
}

#[test]
fn a_voter_missing_from_the_current_register_is_looked_up_in_the_old_one() {
    let url = format!("{BASE}/voters");
    let known = found(json!({"VoterID": "9001332866"}));
    let bodies_and_timeouts = |sent: Vec<Sent>| {
        sent.iter().map(|sent| (sent.json(), sent.timeout_ms)).collect::<Vec<_>>()
    };
    let both = [
        (json!({"number": "9001332866", "type": "MAIN"}), Some(14_500)),
        (json!({"number": "9001332866", "type": "OLD"}), Some(14_500)),
    ];
    let old = host().answer("POST", &url, 200, not_found()).answer("POST", &url, 200, known);
    let old = old.install();
    assert!(lookup(question("voters_card", "9001332866")).is_ok());
    assert_eq!(bodies_and_timeouts(old.requests()), both);
    let unregistered = host().answer("POST", &url, 200, not_found()).install();
    assert!(lookup(question("voters_card", "9001332866")).is_err());
    assert_eq!(bodies_and_timeouts(unregistered.requests()), both);
    let down = host().timeout("POST", &url).install();
    assert!(lookup(question("voters_card", "9001332866")).is_err());
    assert_eq!(bodies_and_timeouts(down.requests()), both[..1]);
}

#[test]
fn a_selfie_is_compared_with_the_photo_of_an_insured_person() {
    for (face, matches, hundredths) in [
        (json!({"status": true, "confidence": 99.9}), true, 9_990),
        (json!({"status": false, "confidence": 0.0404}), false, 404),
    ] {
        let url = format!("{BASE}/ssnit/face");
        let mut response = found(json!({"FullName": "MENSAH AMA"}));
        response["face_data"] = face;
        let host = host().answer("POST", &url, 200, response).install();
        let compared = compare(question("ssnit", "C987464748983")).unwrap();
        let comparison = compared.comparison;
        assert_eq!((comparison.matches, comparison.confidence), (matches, hundredths));
        assert!(compared.entry.details.contains("MENSAH AMA"));
        let sent = host.requests()[0].json();
        assert_eq!(sent, json!({"number": "C987464748983", "image": "/9j/"}));
    }
}

#[test]
fn identity_types_that_are_not_offered_are_invalid() {
    let _host = host().install();
    for identity in ["passport", "drivers_license", "voters_card", "bvn"] {
        assert_eq!(compare(question(identity, "1")).unwrap_err().field(), Some("identity"));
    }
    assert_eq!(lookup(question("bvn", "1")).unwrap_err().field(), Some("identity"));
}
