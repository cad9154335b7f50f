//! The requests for each identity type.

use serde_json::{Value, json};
use tollhouse_plugin::identity::{Person, Question};
use tollhouse_plugin::identity_lookup::Guest;
use tollhouse_plugin::testing::{FakeHost, Sent};

use super::{DOJAH, PREMBLY, dojah_first, entity, found, host, of_ada, question};
use crate::Nigeria;

fn sent(host: FakeHost, question: Question) -> Sent {
    let host = host.install();
    Nigeria::lookup(question).unwrap();
    host.requests().remove(0)
}

fn to_prembly(path: &str, question: Question) -> Value {
    let url = format!("{PREMBLY}/{path}");
    let sent = sent(host().answer("POST", &url, 200, found("data", json!({"x": 1}))), question);
    assert_eq!((&*sent.method, &*sent.url), ("POST", &*url));
    assert_eq!(sent.header("x-api-key"), Some("sk_prembly"));
    assert_eq!(sent.header("app-id"), Some("app-p"));
    sent.json()
}

fn to_dojah(path: &str, question: Question) -> String {
    let url = format!("{DOJAH}/{path}");
    let sent = sent(dojah_first().answer("GET", &url, 200, entity(json!({"x": 1}))), question);
    assert_eq!((&*sent.method, sent.body.len()), ("GET", 0));
    assert_eq!(sent.header("authorization"), Some("sk_dojah"));
    assert_eq!(sent.header("appid"), Some("app-d"));
    sent.url.strip_prefix(&url).unwrap().to_owned()
}

#[test]
fn most_requests_have_only_the_number() {
    for (identity, number, path, body) in [
        ("bvn", "54651333604", "bvn", json!({"number": "54651333604"})),
        ("nin", "12345678909", "vnin", json!({"number_nin": "12345678909"})),
        ("virtual_nin", "AA1234567890123B", "vnin", json!({"number_nin": "AA1234567890123B"})),
        (
            "drivers_license",
            "AAD23208212298",
            "drivers_license/advance/v2",
            json!({"number": "AAD23208212298"}),
        ),
        ("passport", "A00400000", "national_passport", json!({"number": "A00400000"})),
        ("voters_card", "987F545AJ67890", "voters_card", json!({"number": "987F545AJ67890"})),
        ("cac", "092932", "cac", json!({"rc_number": "092932", "company_type": "RC"})),
        ("cac", "BN092932", "cac", json!({"rc_number": "092932", "company_type": "BN"})),
        ("cac", "IT4321", "cac", json!({"rc_number": "4321", "company_type": "IT"})),
        (
            "phone_number",
            "+2348082838283",
            "phone_number/advance",
            json!({"number": "08082838283"}),
        ),
        ("phone_number", "+14155550100", "phone_number/advance", json!({"number": "+14155550100"})),
    ] {
        assert_eq!(to_prembly(path, question(identity, number)), body, "{identity}");
    }
    for (identity, number, path, query) in [
        ("bvn", "22222222222", "kyc/bvn/advance", "?bvn=22222222222"),
        ("nin", "70123456789", "kyc/nin", "?nin=70123456789"),
        ("virtual_nin", "AA1234567890123B", "kyc/vnin", "?vnin=AA1234567890123B"),
        ("drivers_license", "AAD23208212298", "kyc/dl", "?license_number=AAD23208212298"),
        ("passport", "A00400000", "kyc/passport", "?passport_number=A00400000"),
        ("voters_card", "987F545AJ67890", "kyc/vin", "?vin=987F545AJ67890"),
        ("cac", "RC092932", "kyc/cac", "?rc_number=092932"),
        ("phone_number", "+2348082838283", "kyc/phone_number", "?phone_number=08082838283"),
        ("phone_number", "+14155550100", "kyc/phone_number", "?phone_number=%2B14155550100"),
        ("bvn", "1&nin=2", "kyc/bvn/advance", "?bvn=1%26nin%3D2"),
    ] {
        assert_eq!(to_dojah(path, question(identity, number)), query, "{identity}");
    }
}

/// Other registers need only the number, so nothing else is sent.
#[test]
fn names_are_sent_only_to_registers_that_require_them() {
    let licence =
        json!({"number": "L1", "first_name": "Ada", "last_name": "Obi", "dob": "1990-05-21"});
    for (identity, path, body) in [
        ("bvn", "bvn", json!({"number": "L1"})),
        ("nin", "vnin", json!({"number_nin": "L1"})),
        ("drivers_license", "drivers_license/advance/v2", licence),
        ("passport", "national_passport", json!({"number": "L1", "last_name": "Obi"})),
        ("voters_card", "voters_card", json!({"number": "L1"})),
    ] {
        assert_eq!(to_prembly(path, of_ada(question(identity, "L1"))), body, "{identity}");
    }
    let query = to_dojah("kyc/passport", of_ada(question("passport", "A1")));
    assert_eq!(query, "?passport_number=A1&surname=Obi");
    assert_eq!(to_dojah("kyc/dl", of_ada(question("drivers_license", "A1"))), "?license_number=A1");
}

#[test]
fn blank_names_are_not_sent() {
    let nameless = Person { first_name: " ".into(), last_name: String::new(), date_of_birth: None };
    let question = Question { person: Some(nameless), ..question("drivers_license", "L1") };
    assert_eq!(to_prembly("drivers_license/advance/v2", question), json!({"number": "L1"}));
}

#[test]
fn the_urls_of_upstreams_are_settings() {
    let host = host()
        .setting("prembly_url", "https://old.test")
        .setting("prembly_prefix", "api/v1")
        .setting("prembly_app_id", "")
        .setting("prembly_drivers_license", "drivers_license")
        .answer(
            "POST",
            "https://old.test/api/v1/drivers_license",
            200,
            found("data", json!({"x": 1})),
        );
    assert_eq!(sent(host, question("drivers_license", "L1")).header("app-id"), None);
    let host = dojah_first().setting("dojah_url", "https://sandbox.dojah.io/").answer(
        "GET",
        "https://sandbox.dojah.io/api/v1/kyc/nin",
        200,
        entity(json!({"x": 1})),
    );
    sent(host, question("nin", "1"));
}

#[test]
fn an_unknown_identity_type_is_invalid() {
    let _host = host().install();
    assert_eq!(Nigeria::lookup(question("ssnit", "1")).unwrap_err().field(), Some("identity"));
}
