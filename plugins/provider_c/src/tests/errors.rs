use serde_json::{Value, json};
use tollhouse_plugin::testing::FakeHost;
use tollhouse_plugin::types::{Fault, FaultCategory};
use tollhouse_plugin::verification::Guest;

use super::{host, refused};
use crate::Monnify;

const PATH: &str = "/query?paymentReference=x";

fn fault_of(host: FakeHost) -> Fault {
    let _host = host.install();
    Monnify::verify("x".into()).unwrap_err()
}

fn fault(status: u16, response: Value) -> Fault {
    fault_of(host().answer("GET", PATH, status, response))
}

#[test]
fn temporary_errors_are_unavailable() {
    for (status, code) in [(500, "http-500"), (503, "http-503"), (429, "http-429")] {
        let found = fault(status, refused("99", "Oops"));
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
        ("customerEmail must be a well-formed email address", "email"),
        ("amount must be greater than 20", "amount"),
        ("currencyCode is not supported", "currency"),
        ("paymentMethods are not enabled", "channels"),
        ("paymentReference is required", "reference"),
    ] {
        for status in [400, 422] {
            let found = fault(status, refused("99", message));
            assert_eq!((found.category, found.field()), (FaultCategory::Invalid, Some(field)));
            assert_eq!(found.code, "99");
        }
    }
}

#[test]
fn other_errors_are_refused() {
    for (status, response, code) in [
        (400, refused("99", "Something is missing"), "99"),
        (403, refused("99", "The amount is not for this merchant"), "99"),
        (200, refused("D04", "Not today"), "D04"),
        (400, json!({"requestSuccessful": false}), ""),
        (400, json!({"requestSuccessful": true, "responseCode": 0}), "0"),
    ] {
        let found = fault(status, response);
        assert_eq!((found.category, found.code.as_str()), (FaultCategory::Refused, code));
        assert!(!found.retryable);
    }
}

#[test]
fn messages_are_forwarded_without_personal_data_or_tokens() {
    let message = "Customer ada@example.com cannot use MNFY_8C1F7E2A44";
    assert_eq!(fault(400, refused("99", message)).message, "Customer [...] cannot use [...]");
}
