use tollhouse_plugin::testing::FakeHost;
use tollhouse_plugin::types::FaultCategory;

use super::*;

/// A host with an account at the gateway, without responses.
fn account() -> FakeHost {
    FakeHost::new().manifest(MANIFEST).secret("api_key", "k3y")
}

fn send(sender: &str) -> Result<String, Fault> {
    <Plugin as sms::Guest>::send(TextMessage {
        to: "+2348012345678".into(),
        sender: sender.into(),
        text: "Your code is 4071".into(),
        reference: "r-1".into(),
    })
}

#[test]
fn the_examples_succeed() {
    let _host = FakeHost::new().examples(MANIFEST).install();
    assert_eq!(send("").unwrap(), "m-1");
}

#[test]
fn the_request_has_the_key_and_the_message() {
    for (sender, from) in [("", "Shop"), ("Bank", "Bank")] {
        let taken = json!({"id": "m-2", "state": "accepted"});
        let host =
            account().setting("sender", "Shop").answer("POST", "/messages", 202, taken).install();
        send(sender).unwrap();
        let sent = &host.requests()[0];
        assert_eq!(sent.header("authorization"), Some("Bearer k3y"));
        assert_eq!(sent.timeout_ms, Some(10_000));
        let asked = json!({
            "to": "+2348012345678", "from": from, "text": "Your code is 4071", "reference": "r-1",
        });
        assert_eq!(sent.json(), asked);
    }
}

#[test]
fn each_refusal_has_its_category_and_no_personal_data() {
    for (status, body, category) in [
        (401, json!({}), FaultCategory::Misconfigured),
        (422, json!({"code": "bad_number"}), FaultCategory::Invalid),
        (400, json!({"code": "opted_out"}), FaultCategory::Refused),
        (400, json!({"code": "bad_sender"}), FaultCategory::Misconfigured),
        (402, json!({"code": "no_credit"}), FaultCategory::Unavailable),
        (400, json!({"code": "unknown to +2348012345678"}), FaultCategory::Other),
        (200, json!({"id": "m-3", "state": "failed for +2348012345678"}), FaultCategory::Other),
    ] {
        let _host = account().answer("POST", "/messages", status, body.clone()).install();
        let fault = send("").unwrap_err();
        assert_eq!(fault.category, category, "{body}");
        assert!(!format!("{fault:?}").contains("2348012345678"), "{fault:?}");
    }
}

#[test]
fn failures_of_the_gateway_are_unavailable() {
    for host in [
        account().timeout("POST", "/messages"),
        account().no_connection("POST", "/messages"),
        account().cut("POST", "/messages"),
        account().answer_text("POST", "/messages", 200, "<html>"),
        account().answer_text("POST", "/messages", 400, "<html>"),
        account().answer("POST", "/messages", 503, json!({})),
    ] {
        let _host = host.install();
        assert_eq!(send("").unwrap_err().category, FaultCategory::Unavailable);
    }
}
