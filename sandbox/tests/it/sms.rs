//! The SMS gateways, through their HTTP APIs.

use std::time::{Duration, Instant};

use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};
use tollhouse_sandbox::{Fault, FaultKind};

use crate::world::World;

const ACCOUNT: &str = "ACffffffffffffffffffffffffffffffff";
const GATEWAYS: [&str; 3] = ["termii", "africastalking", "twilio"];

async fn send(request: RequestBuilder) -> (u16, Value) {
    let response = request.send().await.unwrap();
    (response.status().as_u16(), response.json().await.unwrap())
}

fn termii(world: &World, path: &str, changes: Value) -> RequestBuilder {
    let mut body = json!({
        "api_key": "TL1", "to": "2348030000007", "from": "Lender", "sms": "Code 123456",
        "type": "plain", "channel": "dnd",
    });
    let members = body.as_object_mut().unwrap();
    for (name, value) in changes.as_object().unwrap() {
        members.insert(name.clone(), value.clone());
    }
    world.request(Method::POST, &format!("/termii/api{path}")).json(&body)
}

fn form(fields: &[(&str, &str)]) -> String {
    url::form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish()
}

fn africastalking(world: &World, fields: &[(&str, &str)]) -> RequestBuilder {
    let request = world.request(Method::POST, "/africastalking/version1/messaging");
    let request = request.header("accept", "application/json").header("apiKey", "atsk_1");
    request.header("content-type", "application/x-www-form-urlencoded").body(form(fields))
}

fn twilio(world: &World, fields: &[(&str, &str)]) -> RequestBuilder {
    let path = format!("/twilio/2010-04-01/Accounts/{ACCOUNT}/Messages.json");
    let request = world.request(Method::POST, &path).basic_auth(ACCOUNT, Some("token"));
    request.header("content-type", "application/x-www-form-urlencoded").body(form(fields))
}

/// Sends "Code 123456" to one number.
fn text(world: &World, gateway: &str, number: &str) -> RequestBuilder {
    match gateway {
        "termii" => termii(world, "/sms/send", json!({ "to": number[1..] })),
        "africastalking" => {
            let fields = [("username", "sandbox"), ("to", number), ("message", "Code 123456")];
            africastalking(world, &fields)
        }
        _ => twilio(world, &[("To", number), ("From", "+15005550006"), ("Body", "Code 123456")]),
    }
}

fn delivered(world: &World, to: &str) -> Vec<(String, String)> {
    let messages = world.simulators.mailbox().list(Some(to));
    messages.into_iter().map(|message| (message.from, message.text)).collect()
}

#[tokio::test]
async fn termii_accepts_messages_to_one_number_or_many() {
    let world = World::new().await;
    let both = json!(["2348030000007", "2348030000008"]);
    let cases = [
        ("/sms/send", json!({}), "Lender"),
        ("/sms/send", json!({ "to": both, "type": "unicode", "channel": "generic" }), "Lender"),
        ("/sms/send/bulk", json!({ "to": both }), "Lender"),
        ("/sms/number/send", json!({ "from": null }), "Termii"),
    ];
    let mut ids = Vec::new();
    for (n, (path, changes, from)) in cases.into_iter().enumerate() {
        let (status, body) = send(termii(&world, path, changes)).await;
        assert_eq!((status, &body["code"]), (200, &json!("ok")), "{path}: {body}");
        assert_eq!(body["message_id"].to_string(), body["message_id_str"].as_str().unwrap());
        assert!(body["message_id"].as_u64().unwrap() > 1 << 53, "{body}");
        ids.push(body["message_id"].as_u64());
        let messages = delivered(&world, "+2348030000007");
        assert_eq!(messages.len(), n + 1);
        assert_eq!(messages[0], (from.to_owned(), "Code 123456".to_owned()));
    }
    ids.dedup();
    assert_eq!((ids.len(), delivered(&world, "+2348030000008").len()), (4, 2));
    let request = world.request(Method::GET, "/termii/api/get-balance?api_key=TL1");
    assert_eq!(send(request).await.1["currency"], "NGN");
}

#[tokio::test]
async fn invalid_requests_to_termii_are_refused_with_a_reason() {
    let world = World::new().await;
    let cases = [
        (json!({ "api_key": "" }), 401, "Invalid api key"),
        (json!({ "to": null }), 400, "to is required"),
        (json!({ "to": [] }), 400, "to must be a number or 1 to 100 numbers"),
        (
            json!({ "to": vec!["2348030000007"; 101] }),
            400,
            "to must be a number or 1 to 100 numbers",
        ),
        (json!({ "to": "+2348030000007" }), 400, "Invalid phone number"),
        (json!({ "to": ["2348030000007", "08030000007"] }), 400, "Invalid phone number"),
        (json!({ "sms": " " }), 400, "sms is required"),
        (json!({ "from": null }), 400, "from is required"),
        (
            json!({ "from": "A Lender Too Long" }),
            404,
            "ApplicationSenderId not found for applicationId: 1 and senderName: A Lender Too Long",
        ),
        (
            json!({ "channel": "pigeon" }),
            400,
            "channel must be one of dnd, generic, whatsapp, voice",
        ),
        (json!({ "type": "rich" }), 400, "type must be one of plain, unicode, encrypted"),
    ];
    for (changes, status, message) in cases {
        let refused = send(termii(&world, "/sms/send", changes)).await;
        assert_eq!(
            refused,
            (status, json!({ "code": status, "message": message, "status": "error" }))
        );
    }
    let request = world.request(Method::POST, "/termii/api/sms/send").body("no JSON");
    assert_eq!(send(request).await.0, 400);
    let request = world.request(Method::GET, "/termii/api/get-balance");
    assert_eq!(send(request).await.0, 401);
    assert!(world.simulators.mailbox().list(None).is_empty());
}

#[tokio::test]
async fn termii_tokens_are_sent_and_verified() {
    let world = World::new().await;
    let token_request = |ttl: u64| {
        json!({
            "pin_type": "NUMERIC", "pin_attempts": 2, "pin_time_to_live": ttl, "pin_length": 6,
            "pin_placeholder": "< 1234 >", "message_text": "Your pin is < 1234 >",
            "phone_number": "2348030000007",
        })
    };
    let verify = async |id: &Value, pin: &str| {
        let request = termii(&world, "/sms/otp/verify", json!({ "pin_id": id, "pin": pin }));
        send(request).await
    };
    let (status, sent) = send(termii(&world, "/sms/otp/send", token_request(5))).await;
    assert_eq!((status, &sent["smsStatus"]), (200, &json!("Message Sent")));
    let text = delivered(&world, "2348030000007")[0].1.clone();
    let pin = text.strip_prefix("Your pin is ").unwrap();
    assert!(pin.len() == 6 && pin.bytes().all(|b| b.is_ascii_digit()), "{text}");
    let wrong = verify(&sent["pinId"], "x").await.1;
    assert_eq!((&wrong["verified"], &wrong["attemptsRemaining"]), (&json!(false), &json!(1)));
    assert_eq!(verify(&sent["pinId"], pin).await.1["verified"], true);
    assert_eq!(verify(&sent["pinId"], pin).await.0, 400);

    let made = send(termii(&world, "/sms/otp/generate", token_request(1))).await.1;
    let (id, pin) = (&made["data"]["pin_id"], made["data"]["otp"].as_str().unwrap());
    world.advance(60).await;
    assert_eq!(verify(id, pin).await.1["verified"], "Expired");
    assert_eq!(send(termii(&world, "/sms/otp/generate", token_request(61))).await.0, 400);
}

#[tokio::test]
async fn africastalking_returns_a_status_per_recipient() {
    let world = World::new().await;
    let to = "+2348030000007,2348030000008,+2348030000000,+2348030000002";
    let fields = [("username", "sandbox"), ("to", to), ("message", "Code 123456")];
    let (status, body) = send(africastalking(&world, &fields)).await;
    assert_eq!(status, 201);
    let data = &body["SMSMessageData"];
    assert_eq!(data["Message"], "Sent to 1/4 Total Cost: NGN 2.2000");
    let recipients = data["Recipients"].as_array().unwrap();
    let codes: Vec<&Value> = recipients.iter().map(|recipient| &recipient["statusCode"]).collect();
    assert_eq!(codes, [101, 403, 409, 405]);
    assert!(recipients[0]["messageId"].as_str().unwrap().starts_with("ATXid_"));
    assert_eq!(
        recipients[2],
        json!({
            "statusCode": 409, "number": "+2348030000000", "status": "DoNotDisturbRejection",
            "cost": "0", "messageId": "None",
        })
    );
    let expected = [("AFRICASTKNG".to_owned(), "Code 123456".to_owned())];
    assert_eq!(delivered(&world, "+2348030000007"), expected);
    assert_eq!(world.simulators.mailbox().list(None).len(), 1);
}

#[tokio::test]
async fn invalid_requests_to_africastalking_are_refused_with_a_reason() {
    let world = World::new().await;
    let valid = [("username", "sandbox"), ("to", "+2348030000007"), ("message", "Hi")];
    for (missing, status, reason) in [
        ("username", 401, "The supplied authentication is invalid"),
        ("to", 400, "Request is missing required form field 'to'"),
        ("message", 400, "Request is missing required form field 'message'"),
    ] {
        let fields: Vec<_> = valid.into_iter().filter(|(name, _)| *name != missing).collect();
        let refused = africastalking(&world, &fields).send().await.unwrap();
        assert_eq!(refused.status(), status);
        assert_eq!(refused.text().await.unwrap(), reason);
    }
    let path = "/africastalking/version1/messaging";
    let form_type = "application/x-www-form-urlencoded";
    let bare = world.request(Method::POST, path).header("content-type", form_type);
    assert_eq!(bare.body(form(&valid)).send().await.unwrap().status(), 401);
    let sender = [&valid[..], &[("from", "A Lender Too Long")]].concat();
    let refused = send(africastalking(&world, &sender)).await;
    let invalid_sender =
        json!({ "SMSMessageData": { "Message": "InvalidSenderId", "Recipients": [] } });
    assert_eq!(refused, (201, invalid_sender));
    assert!(world.simulators.mailbox().list(None).is_empty());
    let request = world.request(Method::POST, path).header("apiKey", "atsk_1");
    let request = request.header("content-type", form_type).body(form(&valid));
    assert!(request.send().await.unwrap().text().await.unwrap().starts_with("<AfricasTalking"));
}

#[tokio::test]
async fn twilio_accepts_a_message_and_returns_it() {
    let world = World::new().await;
    let (status, sent) = send(text(&world, "twilio", "+2348030000007")).await;
    assert_eq!((status, &sent["status"]), (201, &json!("queued")));
    assert_eq!(sent["date_created"], "Sat, 21 Nov 2026 10:00:00 +0000");
    let sid = sent["sid"].as_str().unwrap();
    assert!(sid.len() == 34 && sid.starts_with("SM"), "{sid}");
    let expected = [("+15005550006".to_owned(), "Code 123456".to_owned())];
    assert_eq!(delivered(&world, "+2348030000007"), expected);

    let fetch = |uri: &str, account: &str| {
        let request = world.request(Method::GET, &format!("/twilio{uri}"));
        send(request.basic_auth(account, Some("token")))
    };
    let uri = sent["uri"].as_str().unwrap();
    let (status, shown) = fetch(uri, ACCOUNT).await;
    assert_eq!((status, &shown["status"], &shown["sid"]), (200, &json!("delivered"), &sent["sid"]));
    assert_eq!(fetch(uri, "ACother").await.0, 401);
    assert_eq!(fetch(&uri.replace(sid, "SM0"), ACCOUNT).await.1["code"], 20404);
    assert_eq!(fetch("/2010-04-01/odd", ACCOUNT).await.1["code"], 20404);

    let service =
        [("To", "+2348030000008"), ("MessagingServiceSid", "MG1"), ("Body", "Code 123456")];
    let sent = send(twilio(&world, &service)).await.1;
    assert_eq!((&sent["status"], &sent["from"]), (&json!("accepted"), &Value::Null));
}

#[tokio::test]
async fn invalid_requests_to_twilio_are_refused_with_a_reason() {
    let world = World::new().await;
    let long = "x".repeat(1_601);
    let [to, from, body] = [("To", "+2348030000007"), ("From", "Lender"), ("Body", "Hi")];
    type Case<'a> = (&'a [(&'a str, &'a str)], u32, &'a str);
    let cases: [Case<'_>; 7] = [
        (&[from, body], 21604, "A 'To' phone number is required."),
        (&[to, body], 21603, "A 'From' phone number is required."),
        (&[to, from], 21602, "Message body is required."),
        (
            &[to, ("From", "A Lender Too Long"), body],
            21212,
            "Invalid From Number (caller ID): A Lender Too Long",
        ),
        (&[("To", "08030000007"), from, body], 21211, "Invalid 'To' Phone Number: 08030000007"),
        (&[("To", "2348030000007"), from, body], 21211, "Invalid 'To' Phone Number: 2348030000007"),
        (
            &[to, from, ("Body", &long)],
            21617,
            "The concatenated message body exceeds the 1600 character limit",
        ),
    ];
    for (fields, code, message) in cases {
        let expected = json!({
            "code": code, "message": message, "status": 400,
            "more_info": format!("https://www.twilio.com/docs/errors/{code}"),
        });
        assert_eq!(send(twilio(&world, fields)).await, (400, expected));
    }
    let path = format!("/twilio/2010-04-01/Accounts/{ACCOUNT}/Messages.json");
    for (user, token) in [(ACCOUNT, ""), ("ACother", "token")] {
        let request = world.request(Method::POST, &path).basic_auth(user, Some(token));
        let (status, body) = send(request).await;
        assert_eq!((status, &body["code"]), (401, &json!(20003)));
    }
    assert!(world.simulators.mailbox().list(None).is_empty());
}

#[tokio::test]
async fn the_ending_of_a_number_selects_the_delivery_failure() {
    let world = World::new().await;
    let cases = [
        ("termii", "0000", 400, "/message", json!("DND Active on Phone Number")),
        ("termii", "0001", 400, "/message", json!("Invalid phone number")),
        ("termii", "0002", 400, "/message", json!("Insufficient balance")),
        ("africastalking", "0000", 201, "/SMSMessageData/Recipients/0/statusCode", json!(409)),
        ("africastalking", "0001", 201, "/SMSMessageData/Recipients/0/statusCode", json!(403)),
        ("africastalking", "0002", 201, "/SMSMessageData/Recipients/0/statusCode", json!(405)),
        ("twilio", "0000", 400, "/code", json!(21610)),
        ("twilio", "0001", 400, "/code", json!(21211)),
        ("twilio", "0002", 429, "/code", json!(20429)),
    ];
    for (gateway, ending, status, at, expected) in cases {
        let (got, body) = send(text(&world, gateway, &format!("+234803000{ending}"))).await;
        assert_eq!(
            (got, body.pointer(at)),
            (status, Some(&expected)),
            "{gateway} {ending}: {body}"
        );
    }
    assert!(world.simulators.mailbox().list(None).is_empty());
}

#[tokio::test]
async fn faults_make_each_gateway_fail() {
    let world = World::new().await;
    for gateway in GATEWAYS {
        let script = |kind| world.simulators.faults().push(Fault::new(gateway, kind).delay_ms(20));
        let number = "+2348030000007";
        let count = || delivered(&world, number).len();
        let before = count();
        script(FaultKind::Error500);
        assert_eq!(text(&world, gateway, number).send().await.unwrap().status(), 500);
        script(FaultKind::Malformed);
        let malformed = text(&world, gateway, number).send().await.unwrap();
        assert!(malformed.json::<Value>().await.is_err());
        script(FaultKind::Cut);
        assert!(text(&world, gateway, number).send().await.is_err());
        script(FaultKind::Decline);
        let (_, declined) = send(text(&world, gateway, number)).await;
        let (_, refused) = send(text(&world, gateway, "+2348030000000")).await;
        assert_eq!(declined.to_string().replace(number, "+2348030000000"), refused.to_string());
        assert_eq!(count(), before, "{gateway}");
        script(FaultKind::CutAfter);
        assert!(text(&world, gateway, number).send().await.is_err());
        assert_eq!(count(), before + 1, "{gateway}");
        script(FaultKind::Slow);
        let start = Instant::now();
        assert!(text(&world, gateway, number).send().await.unwrap().status().is_success());
        assert!(start.elapsed() >= Duration::from_millis(20), "{gateway}");
        assert_eq!(count(), before + 2, "{gateway}");
    }
    for kind in [FaultKind::Challenge, FaultKind::Pending, FaultKind::Hold] {
        assert!(Fault::new("termii", kind).validate().is_err(), "{kind:?}");
    }
}

#[tokio::test]
async fn a_message_in_flight_prevents_idleness() {
    let world = World::new().await;
    for gateway in GATEWAYS {
        world.simulators.faults().push(Fault::new(gateway, FaultKind::Slow).delay_ms(50));
        let request = text(&world, gateway, "+2348030000007");
        let sending = tokio::spawn(request.send());
        // The simulator has received it, and waits before it processes it.
        while !world.simulators.faults().list().is_empty() {
            tokio::task::yield_now().await;
        }
        let before = delivered(&world, "+2348030000007").len();
        world.simulators.run_until_idle().await;
        assert_eq!(delivered(&world, "+2348030000007").len(), before + 1, "{gateway}");
        assert!(sending.await.unwrap().unwrap().status().is_success());
    }
}
