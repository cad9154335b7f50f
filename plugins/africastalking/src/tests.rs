use serde_json::{Value, json};
use tollhouse_plugin::sms::{Guest, TextMessage};
use tollhouse_plugin::testing::FakeHost;
use tollhouse_plugin::types::{Fault, FaultCategory};

use crate::AfricasTalking;

const SEND: &str = "https://api.africastalking.com/version1/messaging";

fn host() -> FakeHost {
    FakeHost::new()
        .manifest(crate::MANIFEST)
        .secret("api_key", "atsk_secret_key")
        .setting("username", "acme")
}

fn message() -> TextMessage {
    TextMessage {
        to: "+2348012345678".into(),
        sender: String::new(),
        text: "Your code is 012345 & no more.".into(),
        reference: "M-1".into(),
    }
}

/// A response with one recipient.
fn recipient(status: Value, id: Value) -> Value {
    json!({ "SMSMessageData": {
        "Message": "Sent to 1/1 Total Cost: NGN 2.2000 Message parts: 1",
        "Recipients": [{
            "statusCode": status, "number": "+2348012345678", "status": "Success",
            "cost": "NGN 2.2000", "messageId": id,
        }],
    }})
}

fn send_with_response(status: u16, response: Value) -> Result<String, Fault> {
    let _host = host().answer("POST", SEND, status, response).install();
    AfricasTalking::send(message())
}

fn fault_of(host: FakeHost) -> Fault {
    let _host = host.install();
    AfricasTalking::send(message()).unwrap_err()
}

#[test]
fn requests_are_as_documented() {
    let sent = recipient(json!(101), json!("ATXid_1"));
    let host = host().answer("POST", SEND, 201, sent).install();
    assert_eq!(AfricasTalking::send(message()).unwrap(), "ATXid_1");
    let sent = &host.requests()[0];
    assert_eq!(sent.timeout_ms, Some(10_000));
    assert_eq!(sent.header("apikey"), Some("atsk_secret_key"));
    assert_eq!(sent.header("accept"), Some("application/json"));
    assert_eq!(sent.header("content-type"), Some("application/x-www-form-urlencoded"));
    let form = "username=acme&to=%2B2348012345678&message=Your%20code%20is%20012345%20%26%20no%20more.&bulkSMSMode=1";
    assert_eq!(sent.text(), form);
}

#[test]
fn the_messages_sender_overrides_the_accounts() {
    for (of_message, of_account, from) in
        [("Ajo", "Acme", Some("Ajo")), ("", "Acme", Some("Acme")), ("", "", None)]
    {
        let host = host()
            .setting("sender", of_account)
            .answer("POST", SEND, 201, recipient(json!(100), json!("ATXid_1")))
            .install();
        AfricasTalking::send(TextMessage { sender: of_message.into(), ..message() }).unwrap();
        let sent = host.requests()[0].text();
        assert_eq!(sent.split("&from=").nth(1), from);
    }
}

#[test]
fn the_recipients_status_decides_not_the_http_status() {
    use FaultCategory::{Invalid, Misconfigured, Other, Refused, Unavailable};
    for http in [200, 201] {
        for status in [100, 101, 102] {
            assert_eq!(
                send_with_response(http, recipient(json!(status), json!("ATXid_1"))).unwrap(),
                "ATXid_1"
            );
        }
        for (status, category) in [
            (401, Refused),
            (402, Misconfigured),
            (403, Invalid),
            (404, Invalid),
            (405, Unavailable),
            (406, Refused),
            (407, Unavailable),
            (409, Refused),
            (500, Unavailable),
            (501, Unavailable),
            (502, Unavailable),
            (999, Other),
        ] {
            let fault =
                send_with_response(http, recipient(json!(status), json!("None"))).unwrap_err();
            assert_eq!((fault.category, fault.code.clone()), (category, status.to_string()));
            assert_eq!(fault.field(), (category == Invalid).then_some("to"));
        }
    }
}

#[test]
fn statuses_may_be_strings() {
    assert_eq!(
        send_with_response(201, recipient(json!("101"), json!("ATXid_1"))).unwrap(),
        "ATXid_1"
    );
    assert_eq!(
        send_with_response(201, recipient(json!("403"), json!("None"))).unwrap_err().code,
        "403"
    );
}

#[test]
fn a_response_without_recipients_is_a_fault() {
    use FaultCategory::{Invalid, Misconfigured, Refused, Unavailable};
    for (message, category, code) in [
        ("InvalidSenderId", Misconfigured, "402"),
        ("InvalidPhoneNumber", Invalid, "403"),
        ("InsufficientBalance", Unavailable, "405"),
        ("UserInBlacklist", Refused, "406"),
        ("Sent to 0/1 Total Cost: 0", Unavailable, "no-recipient"),
    ] {
        let bare = json!({ "SMSMessageData": { "Message": message } });
        let empty = json!({ "SMSMessageData": { "Message": message, "Recipients": [] } });
        for response in [bare, empty] {
            let fault = send_with_response(201, response).unwrap_err();
            assert_eq!((fault.category, &*fault.code), (category, code), "{message}");
        }
    }
}

#[test]
fn a_response_without_status_or_id_is_unavailable() {
    for response in [
        json!({}),
        recipient(json!(101), json!("")),
        recipient(json!(101), json!("None")),
        recipient(json!(101), json!(null)),
        recipient(json!(null), json!("ATXid_1")),
        recipient(json!("Sent"), json!("ATXid_1")),
    ] {
        let fault = send_with_response(201, response).unwrap_err();
        assert_eq!(
            (fault.category, &*fault.code),
            (FaultCategory::Unavailable, "unexpected-answer")
        );
    }
}

#[test]
fn http_errors_are_mapped_by_status() {
    let text = |status: u16| {
        fault_of(host().answer_text("POST", SEND, status, "No. <b>2348012345678</b>"))
    };
    for (status, category) in [
        (401, FaultCategory::Misconfigured),
        (400, FaultCategory::Other),
        (429, FaultCategory::Unavailable),
        (500, FaultCategory::Unavailable),
    ] {
        let fault = text(status);
        assert_eq!((fault.category, fault.code), (category, format!("http-{status}")));
    }
    for status in [201, 302] {
        assert_eq!(text(status).code, "unexpected-answer");
    }
    for (host, code) in
        [(host().timeout("POST", SEND), "timeout"), (host().no_connection("POST", SEND), "connect")]
    {
        let fault = fault_of(host);
        assert_eq!((fault.category, &*fault.code), (FaultCategory::Unavailable, code));
    }
}

#[test]
fn missing_configuration_is_misconfigured() {
    for host in [
        host().setting("username", ""),
        host().setting("base_url", ""),
        FakeHost::new().manifest(crate::MANIFEST).setting("username", "acme"),
    ] {
        assert_eq!(fault_of(host).category, FaultCategory::Misconfigured);
    }
}

/// `text::short` of the SDK is not enough: it keeps short words and four digits.
#[test]
fn upstream_messages_are_never_forwarded() {
    let words = "ada at +2348012345678: code 4071";
    let mut quoted = recipient(json!(403), json!("None"));
    quoted["SMSMessageData"]["Recipients"][0]["status"] = json!(words);
    quoted["SMSMessageData"]["Message"] = json!(words);
    let no_recipient = json!({ "SMSMessageData": { "Message": words } });
    for (status, response) in
        [(201, quoted), (201, no_recipient), (400, json!(words)), (401, json!(words))]
    {
        let fault = format!("{:?}", send_with_response(status, response).unwrap_err());
        for private in ["ada", "2348012345678", "4071"] {
            assert!(!fault.contains(private), "{fault}");
        }
    }
}
