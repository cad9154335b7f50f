use serde_json::{Value, json};
use tollhouse_plugin::testing::FakeHost;
use tollhouse_plugin::types::{Fault, FaultCategory};
use tollhouse_plugin::verification::Guest;

use super::{host, refused};
use crate::Flutterwave;

const PATH: &str = "/verify_by_reference?tx_ref=x";

fn fault_of(host: FakeHost) -> Fault {
    let _host = host.install();
    Flutterwave::verify("x".into()).unwrap_err()
}

fn fault(status: u16, response: Value) -> Fault {
    fault_of(host().answer("GET", PATH, status, response))
}

#[test]
fn rejected_credentials_are_misconfigured() {
    for (status, message) in [
        (401, "Invalid authorization key"),
        (401, "Authorization required"),
        (403, "You are not permitted to use this service"),
    ] {
        assert_eq!(fault(status, refused(message)).category, FaultCategory::Misconfigured);
    }
    let no_secret = FakeHost::new().manifest(crate::MANIFEST);
    assert_eq!(fault_of(no_secret).category, FaultCategory::Misconfigured);
    let no_url = host().setting("base_url", "");
    assert_eq!(fault_of(no_url).category, FaultCategory::Misconfigured);
}

#[test]
fn temporary_errors_are_unavailable() {
    for (status, code) in [(500, "http-500"), (503, "http-503"), (429, "http-429")] {
        let found = fault(status, refused("An error occurred. Please contact support"));
        assert_eq!(found.category, FaultCategory::Unavailable);
        assert_eq!((found.code.as_str(), found.retryable), (code, true));
    }
    for (host, code) in [
        (host().timeout("GET", PATH), "timeout"),
        (host().no_connection("GET", PATH), "connect"),
        (host().cut("GET", PATH), "cut"),
        (host().answer_text("GET", PATH, 200, "<html>"), "unexpected-answer"),
        (host().answer_text("GET", PATH, 200, ""), "unexpected-answer"),
        (host().answer_text("GET", PATH, 200, "{\"status\":true}"), "unexpected-answer"),
    ] {
        let found = fault_of(host);
        assert_eq!(found.category, FaultCategory::Unavailable);
        assert_eq!((found.code.as_str(), found.retryable), (code, true));
    }
}

#[test]
fn validation_errors_name_the_contracts_field() {
    for (message, field) in [
        ("email is required", "email"),
        ("Invalid amount passed", "amount"),
        ("currency is not supported", "currency"),
        ("payment_options must be a string", "channels"),
        ("tx_ref is required", "reference"),
    ] {
        let found = fault(400, refused(message));
        assert_eq!((found.category, found.field()), (FaultCategory::Invalid, Some(field)));
    }
}

#[test]
fn other_errors_are_refused() {
    let two_hundred = refused("The amount is not for today");
    for (status, response) in [(400, refused("Something is missing")), (200, two_hundred)] {
        let found = fault(status, response);
        assert_eq!((found.category, found.retryable), (FaultCategory::Refused, false));
    }
    let contradictory = json!({"status": "success", "message": "?", "data": {}});
    assert_eq!(fault(400, contradictory).category, FaultCategory::Refused);
}

#[test]
fn messages_are_forwarded_without_personal_data_or_tokens() {
    let message = "Customer ada@example.com cannot use flw-t1nf-f9b3bf384cd30d6f-k3n";
    assert_eq!(fault(400, refused(message)).message, "Customer [...] cannot use [...]");
}
