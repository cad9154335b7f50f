use serde_json::{Value, json};
use tollhouse_plugin::testing::FakeHost;
use tollhouse_plugin::types::{Fault, FaultCategory};
use tollhouse_plugin::verification::Guest;

use super::host;
use crate::Paystack;

fn fault_of(host: FakeHost) -> Fault {
    let _host = host.install();
    Paystack::verify("x".into()).unwrap_err()
}

fn fault(status: u16, response: Value) -> Fault {
    fault_of(host().answer("GET", "/verify/x", status, response))
}

#[test]
fn rejected_credentials_are_misconfigured() {
    let invalid_key = json!({"status": false, "message": "Invalid key"});
    assert_eq!(fault(401, invalid_key).category, FaultCategory::Misconfigured);
    let no_secret = FakeHost::new().manifest(crate::MANIFEST);
    assert_eq!(fault_of(no_secret).category, FaultCategory::Misconfigured);
    let no_url = host().setting("base_url", "");
    assert_eq!(fault_of(no_url).category, FaultCategory::Misconfigured);
}

#[test]
fn temporary_errors_are_unavailable() {
    for (status, code) in [(500, "http-500"), (503, "http-503"), (429, "http-429")] {
        let found = fault(status, json!({"status": false, "message": "Oops"}));
        assert_eq!(found.category, FaultCategory::Unavailable);
        assert_eq!((found.code.as_str(), found.retryable), (code, true));
    }
    for (host, code) in [
        (host().timeout("GET", "/verify/x"), "timeout"),
        (host().no_connection("GET", "/verify/x"), "connect"),
        (host().cut("GET", "/verify/x"), "cut"),
        (host().answer_text("GET", "/verify/x", 200, "<html>"), "unexpected-answer"),
        (host().answer_text("GET", "/verify/x", 200, ""), "unexpected-answer"),
        (host().answer_text("GET", "/verify/x", 200, "{\"status\":\"yes\"}"), "unexpected-answer"),
    ] {
        let found = fault_of(host);
        assert_eq!(found.category, FaultCategory::Unavailable);
        assert_eq!((found.code.as_str(), found.retryable), (code, true));
    }
}

#[test]
fn validation_errors_name_the_contracts_field() {
    for (message, field) in [
        ("Invalid Email Address Passed", "email"),
        ("Invalid Amount Sent", "amount"),
        ("Currency not supported by merchant", "currency"),
        ("No active channel", "channels"),
    ] {
        let typed = json!({"status": false, "message": message, "type": "validation_error",
            "code": "invalid_params"});
        let coded = json!({"status": false, "message": message, "code": "missing_params"});
        for response in [typed, coded] {
            let found = fault(400, response);
            assert_eq!((found.category, found.field()), (FaultCategory::Invalid, Some(field)));
        }
    }
}

#[test]
fn other_errors_are_refused() {
    let unnamed = json!({"status": false, "message": "Something is missing",
        "type": "validation_error", "code": "missing_params"});
    let business = json!({"status": false, "message": "Email is not on the list",
        "type": "api_error", "code": "unknown"});
    let two_hundred = json!({"status": false, "message": "Not today"});
    for (status, response, code) in
        [(400, unnamed, "missing_params"), (403, business, "unknown"), (200, two_hundred, "")]
    {
        let found = fault(status, response);
        assert_eq!((found.category, found.code.as_str()), (FaultCategory::Refused, code));
        assert!(!found.retryable);
    }
}

#[test]
fn messages_are_forwarded_without_personal_data_or_tokens() {
    let message = "Customer ada@example.com cannot use AUTH_uh8bcl3zbn";
    let found = fault(400, json!({"status": false, "message": message}));
    assert_eq!(found.message, "Customer [...] cannot use [...]");
}
