//! Pitfalls of Prembly's protocol, one fixture each.

mod faults;
mod records;

use serde_json::{Value, json};
use tollhouse_plugin::testing::FakeHost;
use tollhouse_plugin::types::Fault;

use crate::{LookupResult, call};

const BVN: &str = "https://prembly.test/verification/bvn";

fn host() -> FakeHost {
    FakeHost::new()
        .secret("prembly_key", "sk_secret")
        .setting("prembly_url", "https://prembly.test/")
        .setting("prembly_prefix", "/verification")
        .setting("prembly_app_id", "app-1")
}

fn call_on(host: FakeHost, body: &Value) -> Result<LookupResult, Fault> {
    let _host = host.install();
    call("bvn", body, 1_000)
}

fn call_with_response(status: u16, response: Value) -> Result<LookupResult, Fault> {
    call_on(host().answer("POST", BVN, status, response), &json!({"number": "54651333604"}))
}

#[test]
fn requests_are_as_documented() {
    let response = json!({"status": true, "response_code": "00", "data": {"firstName": "Ada"}});
    let host = host().answer("POST", BVN, 200, response.clone()).install();
    call("bvn", &json!({"number": "54651333604"}), 1_000).unwrap();
    let sent = &host.requests()[0];
    assert_eq!((&*sent.method, &*sent.url, sent.timeout_ms), ("POST", BVN, Some(1_000)));
    assert_eq!(sent.header("x-api-key"), Some("sk_secret"));
    assert_eq!(sent.header("app-id"), Some("app-1"));
    assert_eq!(sent.header("content-type"), Some("application/json"));
    assert_eq!(sent.json(), json!({"number": "54651333604"}));
}

#[test]
fn app_id_and_prefix_are_optional() {
    let response = json!({"status": true, "response_code": "00", "data": {"firstName": "Ada"}});
    let url = "https://old.test/api/v2/gh/ssnit";
    for (base, prefix) in [
        ("https://old.test/", "/api/v2/"),
        ("https://old.test/api/v2", ""),
        ("https://old.test/api", "v2"),
    ] {
        let host = host()
            .setting("prembly_url", base)
            .setting("prembly_prefix", prefix)
            .setting("prembly_app_id", "")
            .answer("POST", url, 200, response.clone())
            .install();
        call("gh/ssnit", &json!({}), 1_000).unwrap();
        assert_eq!(host.requests()[0].header("app-id"), None);
    }
}
