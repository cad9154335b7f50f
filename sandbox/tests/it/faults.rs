use std::time::{Duration, Instant};

use reqwest::Method;
use serde_json::{Value, json};
use tollhouse_sandbox::{Fault, FaultKind};

use crate::world::{KEY, SUCCESS, World};

async fn initialize(world: &World, reference: &str) -> reqwest::Result<reqwest::Response> {
    let body = json!({ "email": "a@b.co", "amount": 100, "reference": reference });
    let request = world.request(Method::POST, "/paystack/transaction/initialize");
    request.bearer_auth(KEY).json(&body).send().await
}

async fn exists(world: &World, reference: &str) -> bool {
    let path = format!("/transaction/verify/{reference}");
    world.call(Method::GET, &path, Value::Null).await.0 == 200
}

fn script(world: &World, kind: FaultKind) {
    world.simulators.faults().push(Fault::new("initialize", kind).delay_ms(20));
}

#[tokio::test]
async fn cut_drops_the_connection_before_or_after_processing() {
    let world = World::new().await;
    script(&world, FaultKind::Cut);
    script(&world, FaultKind::CutAfter);
    let before = initialize(&world, "before").await.unwrap_err();
    assert!(before.is_request() && !before.is_timeout(), "{before:?}");
    let after = initialize(&world, "after").await.unwrap_err();
    assert!(after.is_request() && !after.is_timeout(), "{after:?}");
    assert!(!exists(&world, "before").await);
    assert!(exists(&world, "after").await);
    assert_eq!(initialize(&world, "then").await.unwrap().status(), 200);
}

#[tokio::test]
async fn slow_waits_in_real_time() {
    let world = World::new().await;
    for kind in [FaultKind::Slow, FaultKind::SlowAfter] {
        script(&world, kind);
        let start = Instant::now();
        assert_eq!(initialize(&world, &format!("{kind:?}")).await.unwrap().status(), 200);
        assert!(start.elapsed() >= Duration::from_millis(20));
    }
}

#[tokio::test]
async fn errors_and_malformed_responses_skip_processing() {
    let world = World::new().await;
    script(&world, FaultKind::Error500);
    script(&world, FaultKind::Malformed);
    assert_eq!(initialize(&world, "one").await.unwrap().status(), 500);
    let malformed = initialize(&world, "two").await.unwrap();
    assert_eq!(malformed.status(), 200);
    assert!(malformed.json::<Value>().await.is_err());
    assert!(!exists(&world, "one").await);
    assert!(!exists(&world, "two").await);
}

#[tokio::test]
async fn a_fault_applies_to_its_operation_the_given_number_of_times() {
    let world = World::new().await;
    world.initialize("there").await;
    world.simulators.faults().push(Fault::new("verify", FaultKind::Error500).times(2));
    assert_eq!(initialize(&world, "other").await.unwrap().status(), 200);
    let mut statuses = Vec::new();
    for _ in 0..3 {
        let request = world.request(Method::GET, "/paystack/transaction/verify/there");
        statuses.push(request.bearer_auth(KEY).send().await.unwrap().status().as_u16());
    }
    assert_eq!(statuses, [500, 500, 200]);
}

#[tokio::test]
async fn faults_are_scripted_over_http() {
    let world = World::new().await;
    let push = async |body: Value| {
        let response = world.request(Method::POST, "/faults").json(&body).send().await.unwrap();
        response.status().as_u16()
    };
    assert_eq!(push(json!({ "operation": "verify", "kind": "cut_after", "times": 3 })).await, 204);
    assert_eq!(push(json!({ "operation": "notification", "kind": "hold" })).await, 204);
    assert_eq!(push(json!({ "operation": "nothing", "kind": "cut" })).await, 400);
    assert_eq!(push(json!({ "operation": "verify", "kind": "hold" })).await, 400);
    assert_eq!(push(json!({ "operation": "verify", "kind": "odd" })).await, 400);
    let expected = [
        Fault::new("verify", FaultKind::CutAfter).times(3),
        Fault::new("notification", FaultKind::Hold),
    ];
    assert_eq!(world.simulators.faults().list(), expected);
    let response = world.request(Method::DELETE, "/faults").send().await.unwrap();
    assert_eq!(response.status(), 204);
    assert!(world.simulators.faults().list().is_empty());
}

#[tokio::test]
async fn a_saved_card_can_be_declined_challenged_or_left_pending() {
    let world = World::new().await;
    let code = world.pay("first", SUCCESS).await["authorization"]["authorization_code"].clone();
    let charge = async |reference: &str, kind| {
        world.simulators.faults().push(Fault::new("charge", kind));
        let body = json!({
            "email": "ada@example.com", "amount": 100, "authorization_code": code,
            "reference": reference,
        });
        world.post("/transaction/charge_authorization", body).await["data"].clone()
    };
    let declined = charge("declined", FaultKind::Decline).await;
    assert_eq!(declined["status"], "failed");
    assert_eq!(declined["gateway_response"], "Insufficient Funds");

    let pending = charge("pending", FaultKind::Pending).await;
    assert_eq!(pending["status"], "pending");
    assert!(world.simulators.paystack().resolve("pending", tollhouse_sandbox::Outcome::Failed));
    assert_eq!(world.verify("pending").await["status"], "failed");

    let paused = charge("paused", FaultKind::Challenge).await;
    assert_eq!(paused["paused"], true);
    assert_eq!(world.verify("paused").await["status"], "ongoing");
    let page = paused["access_code"].as_str().unwrap();
    assert_eq!(world.complete(page, json!({ "outcome": "success" })).await.0, 200);
    let paid = world.verify("paused").await;
    assert_eq!(paid["status"], "success");
    assert_eq!(paid["authorization"]["authorization_code"], code);
}
