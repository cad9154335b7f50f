use reqwest::Method;
use serde_json::json;
use tollhouse_sandbox::{Fault, FaultKind, paystack};

use crate::world::{KEY, SUCCESS, World};

#[test]
fn signatures_match_the_known_vector() {
    let body = br#"{"event":"charge.success","data":{"reference":"pay-1","amount":10000}}"#;
    let signature = "dc7cd888540ba73cdf492d2d0f92eb4188dfc48f5b474ac36c2c76d003733c2abf675210b0d09cc0f217f7c0afa3d99d86e639cf10e7bc6f479c0930d19581d2";
    assert_eq!(paystack::sign(KEY, body), signature);
}

#[tokio::test]
async fn a_success_sends_a_signed_webhook_and_a_failure_none() {
    let world = World::new().await;
    world.pay("bad", "4084080000005408").await;
    world.pay("good", SUCCESS).await;
    assert_eq!(world.notification_events().await, ["charge.success"]);
    let (headers, body) = world.receiver.received().remove(0);
    assert_eq!(headers["x-paystack-signature"], paystack::sign(KEY, body.as_bytes()));
    assert_eq!(headers["content-type"], "application/json");
    let data = &world.receiver.bodies()[0]["data"];
    assert_eq!(*data, world.verify("good").await);
}

#[tokio::test]
async fn the_background_task_sends_webhooks() {
    let world = World::new().await;
    world.pay("good", SUCCESS).await;
    for _ in 0..200 {
        if !world.receiver.received().is_empty() {
            return;
        }
        // A short poll interval: the background task needs no explicit trigger.
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    panic!("no webhook arrived");
}

#[tokio::test]
async fn missing_metadata_is_zero_in_the_webhook() {
    let world = World::new().await;
    let body = json!({ "email": "a@b.co", "amount": 100, "reference": "bare" });
    let response = world.post("/transaction/initialize", body).await;
    let page = response["data"]["access_code"].as_str().unwrap();
    world.complete(page, json!({ "outcome": "success" })).await;
    world.notification_events().await;
    assert_eq!(world.receiver.bodies()[0]["data"]["metadata"], 0);
    assert_eq!(world.verify("bare").await["metadata"], "");
}

#[tokio::test]
async fn a_failing_receiver_gets_hourly_retries_for_ten_hours() {
    let world = World::new().await;
    world.receiver.respond_with(500);
    world.pay("good", SUCCESS).await;
    assert_eq!(world.notification_events().await.len(), 1);
    world.advance(3_599).await;
    assert_eq!(world.receiver.received().len(), 1);
    world.advance(1).await;
    assert_eq!(world.receiver.received().len(), 2);
    // Only 200 counts as a confirmation.
    world.receiver.respond_with(202);
    for _ in 0..20 {
        world.advance(3_600).await;
    }
    assert_eq!(world.receiver.received().len(), 11);
}

#[tokio::test]
async fn a_confirmed_webhook_is_not_repeated() {
    let world = World::new().await;
    world.pay("good", SUCCESS).await;
    world.advance(100_000).await;
    assert_eq!(world.receiver.received().len(), 1);
}

fn script(world: &World, kind: FaultKind, times: u32) {
    world.simulators.faults().push(Fault::new("notification", kind).times(times));
}

async fn references(world: &World) -> Vec<String> {
    world.simulators.run_until_idle().await;
    let reference =
        |body: serde_json::Value| body["data"]["reference"].as_str().unwrap().to_owned();
    world.receiver.bodies().into_iter().map(reference).collect()
}

#[tokio::test]
async fn a_webhook_can_be_duplicated_lost_or_delayed() {
    let world = World::new().await;
    script(&world, FaultKind::Duplicate, 1);
    script(&world, FaultKind::Cut, 1);
    world.simulators.faults().push(Fault::new("notification", FaultKind::Slow).delay_ms(30));
    for reference in ["twice", "never", "late"] {
        world.pay(reference, SUCCESS).await;
    }
    // Webhooks of different payments are concurrent, so their order is undefined.
    let mut received = references(&world).await;
    received.sort();
    assert_eq!(received, ["late", "twice", "twice"]);
}

/// The signature must be valid; otherwise the webhook would be rejected for it.
#[tokio::test]
async fn a_malformed_webhook_is_signed() {
    let world = World::new().await;
    script(&world, FaultKind::Malformed, 1);
    world.pay("cut-off", SUCCESS).await;
    world.simulators.run_until_idle().await;
    let (headers, body) = world.receiver.received().remove(0);
    assert!(serde_json::from_str::<serde_json::Value>(&body).is_err(), "{body}");
    assert_eq!(headers["x-paystack-signature"], paystack::sign(KEY, body.as_bytes()));
}

#[tokio::test]
async fn webhooks_are_held_until_released() {
    let world = World::new().await;
    script(&world, FaultKind::Hold, 2);
    for reference in ["one", "two", "three"] {
        world.pay(reference, SUCCESS).await;
    }
    assert_eq!(references(&world).await, ["three"]);
    let response = world.request(Method::POST, "/faults/release").send().await.unwrap();
    assert_eq!(response.json::<serde_json::Value>().await.unwrap(), json!({ "released": 2 }));
    assert_eq!(references(&world).await, ["three", "one", "two"]);
}

#[tokio::test]
async fn reordered_webhooks_are_sent_in_reverse_order() {
    let world = World::new().await;
    script(&world, FaultKind::Reorder, 2);
    for reference in ["one", "two"] {
        world.pay(reference, SUCCESS).await;
    }
    assert_eq!(references(&world).await, ["two", "one"]);
    script(&world, FaultKind::Reorder, 3);
    for reference in ["three", "four"] {
        world.pay(reference, SUCCESS).await;
    }
    assert_eq!(world.simulators.release(), 2);
    assert_eq!(references(&world).await, ["two", "one", "four", "three"]);
}

#[tokio::test]
async fn an_account_without_a_webhook_gets_none() {
    let world = World::new().await;
    let request = world.request(Method::POST, "/paystack/transaction/initialize");
    let body = json!({ "email": "a@b.co", "amount": 100 });
    let response = request.bearer_auth("sk_test_silent").json(&body).send().await.unwrap();
    let body: serde_json::Value = response.json().await.unwrap();
    let page = body["data"]["access_code"].as_str().unwrap();
    assert_eq!(world.complete(page, json!({ "outcome": "success" })).await.0, 200);
    assert_eq!(world.simulators.run_until_idle().await, 0);
}
