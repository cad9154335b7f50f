use serde_json::{Value, json};
use tollhouse_plugin::sms::{Guest, TextMessage};
use tollhouse_plugin::testing::FakeHost;
use tollhouse_plugin::types::{Fault, FaultCategory};

use crate::Twilio;

const SEND: &str = "https://api.twilio.com/2010-04-01/Accounts/AC1/Messages.json";
const SERVICE: &str = "MG0123456789abcdef0123456789ABCDEF";

fn host() -> FakeHost {
    FakeHost::new()
        .manifest(crate::MANIFEST)
        .secret("auth_token", "t0p-secret")
        .setting("account_sid", "AC1")
        .setting("sender", "+15005550006")
}

fn message() -> TextMessage {
    TextMessage {
        to: "+2348012345678".into(),
        sender: String::new(),
        text: "Your code is 012345.".into(),
        reference: "M-1".into(),
    }
}

fn made() -> Value {
    json!({
        "sid": "SM1", "status": "queued", "to": "+2348012345678", "from": "+15005550006",
        "body": "Your code is 012345.", "num_segments": "1", "price": null, "error_code": null,
        "error_message": null, "uri": "/2010-04-01/Accounts/AC1/Messages/SM1.json",
    })
}

fn made_with(changes: Value) -> Value {
    let mut response = made();
    for (name, value) in changes.as_object().into_iter().flatten() {
        response[name] = value.clone();
    }
    response
}

fn error(status: u16, code: u64) -> Value {
    json!({
        "code": code, "message": "The 'To' number +2348012345678 is not valid.",
        "more_info": format!("https://www.twilio.com/docs/errors/{code}"), "status": status,
    })
}

fn send_with_response(status: u16, response: Value) -> Result<String, Fault> {
    let _host = host().answer("POST", SEND, status, response).install();
    Twilio::send(message())
}

fn fault_of(host: FakeHost) -> Fault {
    let _host = host.install();
    Twilio::send(message()).unwrap_err()
}

#[test]
fn requests_are_as_documented() {
    let host = host().answer("POST", SEND, 201, made()).install();
    assert_eq!(Twilio::send(message()).unwrap(), "SM1");
    let sent = &host.requests()[0];
    assert_eq!(sent.timeout_ms, Some(10_000));
    assert_eq!(sent.header("authorization"), Some("Basic QUMxOnQwcC1zZWNyZXQ="));
    assert_eq!(sent.header("content-type"), Some("application/x-www-form-urlencoded"));
    assert_eq!(
        sent.text(),
        "To=%2B2348012345678&From=%2B15005550006&Body=Your%20code%20is%20012345."
    );
}

#[test]
fn a_sender_is_a_number_a_name_or_a_messaging_service() {
    let sent = |of_message: &str, of_account: &str| {
        let host = host().setting("sender", of_account).answer("POST", SEND, 201, made()).install();
        Twilio::send(TextMessage { sender: of_message.into(), ..message() }).unwrap();
        host.requests()[0].text().split('&').nth(1).unwrap().to_owned()
    };
    assert_eq!(sent("", "Acme"), "From=Acme");
    assert_eq!(sent("Ajo", "Acme"), "From=Ajo");
    assert_eq!(sent("", SERVICE), format!("MessagingServiceSid={SERVICE}"));
    assert_eq!(sent(SERVICE, "Acme"), format!("MessagingServiceSid={SERVICE}"));
    assert_eq!(sent("MGM Loans", "Acme"), "From=MGM%20Loans");
}

#[test]
fn the_account_is_encoded_in_the_path() {
    let path = "/2010-04-01/Accounts/AC1%2F..%2FAC2/Messages.json";
    let _host =
        host().setting("account_sid", "AC1/../AC2").answer("POST", path, 201, made()).install();
    assert!(Twilio::send(message()).is_ok());
}

#[test]
fn a_created_message_that_failed_is_a_fault() {
    for status in ["accepted", "scheduled", "queued", "sending", "sent", "delivered"] {
        assert_eq!(send_with_response(201, made_with(json!({"status": status}))).unwrap(), "SM1");
    }
    for (changes, category, code) in [
        (json!({"status": "failed"}), FaultCategory::Unavailable, "not-sent"),
        (json!({"status": "undelivered"}), FaultCategory::Unavailable, "not-sent"),
        (json!({"status": "failed", "error_code": 21610}), FaultCategory::Refused, "21610"),
        (json!({"status": "queued", "error_code": 30005}), FaultCategory::Refused, "30005"),
        (json!({"sid": ""}), FaultCategory::Unavailable, "unexpected-answer"),
        (json!({"sid": null}), FaultCategory::Unavailable, "unexpected-answer"),
        (json!({"sid": 1}), FaultCategory::Unavailable, "unexpected-answer"),
    ] {
        let fault = send_with_response(201, made_with(changes)).unwrap_err();
        assert_eq!((fault.category, &*fault.code), (category, code));
    }
}

#[test]
fn codes_are_mapped_to_faults() {
    use FaultCategory::{Invalid, Misconfigured, Other, Refused, Unavailable};
    for (category, codes) in [
        (Invalid, &[21211, 21217, 21614, 21617][..]),
        (Refused, &[21214, 21610, 30004, 30006]),
        (Misconfigured, &[20003, 20404, 21212, 21408, 21606, 21608, 21659, 21703]),
        (Unavailable, &[21611, 21612, 30001, 30008]),
        (Other, &[21999]),
    ] {
        for code in codes {
            let fault = send_with_response(400, error(400, *code)).unwrap_err();
            assert_eq!((fault.category, fault.code), (category, code.to_string()));
        }
    }
    assert_eq!(send_with_response(400, error(400, 21614)).unwrap_err().field(), Some("to"));
    assert_eq!(send_with_response(404, error(404, 20404)).unwrap_err().category, Misconfigured);
}

#[test]
fn http_statuses_are_mapped_to_faults() {
    for (status, code, category) in [
        (401, 20003, FaultCategory::Misconfigured),
        (429, 20429, FaultCategory::Unavailable),
        (500, 20500, FaultCategory::Unavailable),
        (503, 21211, FaultCategory::Unavailable),
    ] {
        let fault = send_with_response(status, error(status, code)).unwrap_err();
        assert_eq!((fault.category, fault.code), (category, format!("http-{status}")));
    }
    for (host, code) in [
        (host().answer_text("POST", SEND, 201, "<html>"), "unexpected-answer"),
        (host().answer_text("POST", SEND, 404, "<html>"), "unexpected-answer"),
        (host().answer("POST", SEND, 400, json!({"message": "no code"})), "unexpected-answer"),
        (host().answer("POST", SEND, 302, made()), "unexpected-answer"),
        (host().answer_text("POST", SEND, 502, "<html>"), "http-502"),
        (host().timeout("POST", SEND), "timeout"),
        (host().no_connection("POST", SEND), "connect"),
        (host().cut("POST", SEND), "cut"),
    ] {
        let fault = fault_of(host);
        assert_eq!((fault.category, &*fault.code), (FaultCategory::Unavailable, code));
    }
}

#[test]
fn missing_configuration_is_misconfigured() {
    let no_token = FakeHost::new().manifest(crate::MANIFEST);
    for host in [
        host().setting("account_sid", ""),
        host().setting("sender", ""),
        host().setting("base_url", ""),
        no_token.setting("account_sid", "AC1").setting("sender", "Acme"),
    ] {
        assert_eq!(fault_of(host).category, FaultCategory::Misconfigured);
    }
}

/// `text::short` of the SDK is not enough: it keeps short words and four digits.
#[test]
fn upstream_messages_are_never_forwarded() {
    let words = "ada at +2348012345678: code 4071";
    let failed = |code: Value| {
        made_with(json!({"status": "failed", "error_code": code, "error_message": words}))
    };
    let refused = |code: u64| json!({"code": code, "message": words, "status": 400});
    for (status, response) in [
        (400, refused(21211)),
        (400, refused(1)),
        (401, refused(20003)),
        (201, failed(json!(30008))),
        (201, failed(json!(null))),
    ] {
        let fault = format!("{:?}", send_with_response(status, response).unwrap_err());
        for private in ["ada", "2348012345678", "4071"] {
            assert!(!fault.contains(private), "{fault}");
        }
    }
}
