use serde_json::{Value, json};
use tollhouse_plugin::sms::{Guest, TextMessage};
use tollhouse_plugin::testing::FakeHost;
use tollhouse_plugin::types::{Fault, FaultCategory};

use crate::Termii;

const SEND: &str = "https://api.ng.termii.com/api/sms/send";

fn host() -> FakeHost {
    FakeHost::new()
        .manifest(crate::MANIFEST)
        .secret("api_key", "TL_secret_key")
        .setting("sender", "Acme")
}

fn message() -> TextMessage {
    TextMessage {
        to: "+2348012345678".into(),
        sender: String::new(),
        text: "Your code is 012345.".into(),
        reference: "M-1".into(),
    }
}

fn accepted() -> Value {
    json!({
        "code": "ok", "message_id": 9122821270554876574_u64, "message_id_str": "9122821270554876574",
        "message": "Successfully Sent", "balance": 9, "user": "Ada Obi",
    })
}

/// The response with some fields replaced; `null` counts as absent.
fn accepted_with(changes: Value) -> Value {
    let mut response = accepted();
    for (name, value) in changes.as_object().into_iter().flatten() {
        response[name] = value.clone();
    }
    response
}

fn send_with_response(status: u16, response: Value) -> Result<String, Fault> {
    let _host = host().answer("POST", SEND, status, response).install();
    Termii::send(message())
}

fn fault_of(host: FakeHost) -> Fault {
    let _host = host.install();
    Termii::send(message()).unwrap_err()
}

#[test]
fn requests_are_as_documented() {
    let host = host().answer("POST", SEND, 200, accepted()).install();
    assert_eq!(Termii::send(message()).unwrap(), "9122821270554876574");
    let sent = &host.requests()[0];
    assert_eq!(sent.timeout_ms, Some(10_000));
    let expected = json!({
        "api_key": "TL_secret_key", "to": "2348012345678", "from": "Acme",
        "sms": "Your code is 012345.", "type": "plain", "channel": "dnd",
    });
    assert_eq!(sent.json(), expected);
}

#[test]
fn sender_route_and_alphabet_are_chosen() {
    let host = host().setting("route", "generic").answer("POST", SEND, 200, accepted()).install();
    let message = TextMessage { sender: "Ajo".into(), text: "₦500".into(), ..message() };
    Termii::send(message).unwrap();
    let sent = host.requests()[0].json();
    assert_eq!((&sent["from"], &sent["channel"]), (&json!("Ajo"), &json!("generic")));
    assert_eq!((&sent["type"], &sent["sms"]), (&json!("unicode"), &json!("₦500")));
}

#[test]
fn the_message_id_is_read_from_strings_and_numbers() {
    for (changes, id) in [
        (json!({"code": "OK"}), "9122821270554876574"),
        (json!({"message_id": "x-1", "message_id_str": null}), "x-1"),
        (json!({"message_id_str": null}), "9122821270554876574"),
        // The number has lost its last digits.
        (
            json!({"message_id": 3.0175440544590837e24, "message_id_str": "3017544054459083819856413"}),
            "3017544054459083819856413",
        ),
    ] {
        assert_eq!(send_with_response(200, accepted_with(changes)).unwrap(), id);
    }
}

#[test]
fn http_success_without_acceptance_is_a_fault() {
    for (response, category, code) in [
        (json!({}), FaultCategory::Unavailable, "unexpected-answer"),
        (json!({"code": "ok"}), FaultCategory::Unavailable, "unexpected-answer"),
        (
            accepted_with(json!({"message_id": null, "message_id_str": ""})),
            FaultCategory::Unavailable,
            "unexpected-answer",
        ),
        (accepted_with(json!({"code": "error"})), FaultCategory::Unavailable, "unexpected-answer"),
        (
            json!({"code": 400, "message": "Insufficient balance"}),
            FaultCategory::Unavailable,
            "no-credit",
        ),
        (
            json!({"message": "DND Active on Phone Number"}),
            FaultCategory::Refused,
            "do-not-disturb",
        ),
    ] {
        let fault = send_with_response(200, response).unwrap_err();
        assert_eq!((fault.category, &*fault.code), (category, code));
    }
}

#[test]
fn messages_are_mapped_to_faults() {
    use FaultCategory::{Invalid, Misconfigured, Other, Refused, Unavailable};
    for (status, words, category, code) in [
        (400, "Invalid Sender Id", Misconfigured, "sender"),
        (
            404,
            "ApplicationSenderId not found for applicationId: 1 and senderName: Acme",
            Misconfigured,
            "sender",
        ),
        (400, "Insufficient balance", Unavailable, "no-credit"),
        (400, "Your device has reached the daily limit", Unavailable, "limit"),
        (400, "Country Inactive. Contact Administrator", Misconfigured, "account"),
        (400, "You are not set up on this route", Misconfigured, "account"),
        (400, "Your account is not active", Misconfigured, "account"),
        (400, "DND Active on Phone Number", Refused, "do-not-disturb"),
        (400, "Invalid phone number 2348012345678", Invalid, "number"),
        (422, "The given data was invalid.", Other, "http-422"),
    ] {
        let fault =
            send_with_response(status, json!({"code": status, "message": words})).unwrap_err();
        assert_eq!((fault.category, &*fault.code), (category, code), "{words}");
        let field = (category == Invalid).then_some("to");
        assert_eq!(fault.field(), field, "{words}");
    }
}

#[test]
fn failures_of_termii_are_unavailable() {
    for status in [429, 500, 503] {
        let fault =
            send_with_response(status, json!({"message": "Invalid phone number"})).unwrap_err();
        assert_eq!(
            (fault.category, fault.code),
            (FaultCategory::Unavailable, format!("http-{status}"))
        );
    }
    for (host, code) in [
        (host().timeout("POST", SEND), "timeout"),
        (host().no_connection("POST", SEND), "connect"),
        (host().cut("POST", SEND), "cut"),
        (host().answer_text("POST", SEND, 502, "<html>"), "http-502"),
        (host().answer_text("POST", SEND, 200, "<html>"), "unexpected-answer"),
        (host().answer_text("POST", SEND, 404, "<html>"), "unexpected-answer"),
    ] {
        let fault = fault_of(host);
        assert_eq!((fault.category, &*fault.code), (FaultCategory::Unavailable, code));
    }
}

#[test]
fn missing_or_rejected_configuration_is_misconfigured() {
    for status in [401, 403] {
        let fault = fault_of(host().answer_text("POST", SEND, status, "no"));
        assert_eq!(
            (fault.category, fault.code),
            (FaultCategory::Misconfigured, format!("http-{status}"))
        );
    }
    let bare = FakeHost::new().manifest(crate::MANIFEST);
    for host in [
        bare.secret("api_key", "TL_secret_key"),
        host().setting("base_url", ""),
        host().setting("route", ""),
    ] {
        assert_eq!(fault_of(host).category, FaultCategory::Misconfigured);
    }
}

/// `text::short` of the SDK is not enough: it keeps short words and four digits.
#[test]
fn upstream_messages_are_never_forwarded() {
    for word in ["", "phone", "sender", "balance", "limit", "route", "dnd active"] {
        for status in [200, 400, 401, 500] {
            let words = format!("ada at +2348012345678: code 4071, {word}");
            let fault = send_with_response(
                status,
                json!({"code": words, "status": words, "message": words}),
            );
            let fault = format!("{:?}", fault.unwrap_err());
            for private in ["ada", "2348012345678", "4071"] {
                assert!(!fault.contains(private), "{fault}");
            }
        }
    }
}
