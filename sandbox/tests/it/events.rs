use reqwest::Method;
use serde_json::{Value, json};
use tollhouse_platform::clock::{Clock, Timestamp};
use tollhouse_sandbox::events::SignatureStatus;

use crate::world::World;

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
/// Computed independently, over the id, time and body below.
const AT: i64 = 1_795_255_200;
const BODY: &str = r#"{"company_id":"co_1","event":"payment.success","data":{}}"#;
const GOOD: &str = "v1,CrTJFBzdWIX15MJi6ITF+xNCIMaF2mOhM8ibDZ06BEo=";

async fn send(world: &World, signature: &str, body: &str) {
    let request = world
        .request(Method::POST, "/events")
        .header("webhook-id", "evt_1")
        .header("webhook-timestamp", AT.to_string())
        .header("webhook-signature", signature)
        .body(body.to_owned());
    assert_eq!(request.send().await.unwrap().status(), 200);
}

#[tokio::test]
async fn events_are_kept_with_the_result_of_signature_verification() {
    let world = World::new().await;
    assert_eq!(world.clock.now(), Timestamp(AT * 1_000));
    send(&world, GOOD, BODY).await;
    world.simulators.set_event_secret("co_1", SECRET);
    send(&world, GOOD, BODY).await;
    send(&world, &format!("v1,AAAA {GOOD}"), BODY).await;
    send(&world, "v1,AAAA", BODY).await;
    send(&world, GOOD, &BODY.replace("success", "failed")).await;
    use SignatureStatus::{Invalid, Unknown, Valid};
    let signatures: Vec<SignatureStatus> =
        world.simulators.events().iter().map(|e| e.signature).collect();
    assert_eq!(signatures, [Invalid, Invalid, Valid, Valid, Unknown]);

    world.advance(301).await;
    send(&world, GOOD, BODY).await;
    assert_eq!(world.simulators.events()[0].signature, Invalid, "too old");

    let response = world.request(Method::GET, "/events.json").send().await.unwrap();
    let list: Value = response.json().await.unwrap();
    let expected = json!({
        "id": "evt_1", "event": "payment.success", "signature": "unknown", "body": BODY,
        "at": "2026-11-21T10:00:00.000Z",
    });
    assert_eq!(list[5], expected);
    let headers = &world.simulators.events()[0].headers;
    assert!(headers.iter().any(|(name, value)| name == "webhook-id" && value == "evt_1"));
}

#[tokio::test]
async fn the_newest_thousand_events_are_kept() {
    let world = World::new().await;
    for n in 0..1_005 {
        let body = json!({ "company_id": "co_1", "event": format!("e{n}") }).to_string();
        send(&world, "", &body).await;
    }
    let events = world.simulators.events();
    assert_eq!(events.len(), 1_000);
    assert_eq!(events[0].event, "e1004");
    assert_eq!(events[999].event, "e5");
}

#[tokio::test]
async fn faults_make_the_receiver_fail() {
    let world = World::new().await;
    let fault = tollhouse_sandbox::Fault::new("events", tollhouse_sandbox::FaultKind::Error500);
    world.simulators.faults().push(fault);
    let response = world.request(Method::POST, "/events").body(BODY).send().await.unwrap();
    assert_eq!(response.status(), 500);
    assert!(world.simulators.events().is_empty());
}

#[tokio::test]
async fn simulators_run_with_the_system_clock() {
    let bind = async || tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let simulators =
        tollhouse_sandbox::Simulators::start(bind().await, bind().await, Clock::system());
    assert_eq!(simulators.run_until_idle().await, 0);
    assert!(simulators.url().starts_with("http://127.0.0.1:"));
}
