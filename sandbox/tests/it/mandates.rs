use reqwest::Method;
use serde_json::{Value, json};
use tollhouse_sandbox::{Fault, FaultKind, Outcome};

use crate::world::{SUCCESS, World};

const VERIFY: &str = "/customer/authorization/verify";

async fn open(world: &World) -> (String, String) {
    let body = json!({
        "email": "ada@example.com", "channel": "direct_debit", "callback_url": "https://shop.test/",
        "account": { "number": "0123456789", "bank_code": "058" },
    });
    let data = world.post("/customer/authorization/initialize", body).await["data"].clone();
    let text = |name: &str| data[name].as_str().unwrap().to_owned();
    assert!(text("redirect_url").ends_with(&format!("/checkout/{}", text("access_code"))));
    (text("reference"), text("access_code"))
}

async fn active(world: &World) -> String {
    let (reference, page) = open(world).await;
    let by_card = json!({ "outcome": "success", "card": SUCCESS });
    assert_eq!(world.complete(&page, by_card).await.0, 400);
    assert_eq!(world.complete(&page, json!({ "outcome": "success" })).await.0, 200);
    world.advance(10).await;
    let data = world.get(&format!("{VERIFY}/{reference}")).await["data"].clone();
    assert_eq!(data["active"], true);
    data["authorization_code"].as_str().unwrap().to_owned()
}

fn charge(code: &str, reference: &str) -> Value {
    json!({
        "email": "ada@example.com", "amount": 1_000, "authorization_code": code,
        "reference": reference,
    })
}

#[tokio::test]
async fn a_mandate_is_activated_by_the_clock() {
    let world = World::new().await;
    let (reference, page) = open(&world).await;
    let path = format!("{VERIFY}/{reference}");
    let (status, body) = world.call(Method::GET, &path, Value::Null).await;
    assert_eq!((status, &body["code"]), (400, &json!("unknown")));
    assert_eq!(body["metadata"]["nextStep"], "Try again later");

    let (status, body) = world.complete(&page, json!({ "outcome": "success" })).await;
    assert_eq!(status, 200);
    let back = format!("https://shop.test/?trxref={reference}&reference={reference}");
    assert_eq!(body["redirect_url"], back);
    assert_eq!(world.get(&path).await["data"]["active"], false);
    let pending = world.get("/directdebit/mandate-authorizations?status=pending").await;
    assert_eq!(pending["data"].as_array().unwrap().len(), 1);
    world.advance(10).await;
    assert_eq!(world.get(&path).await["data"]["active"], true);
    let events = world.notification_events().await;
    let stem = "direct_debit.authorization";
    assert_eq!(events, [format!("{stem}.created"), format!("{stem}.active")]);
    let bodies = world.receiver.bodies();
    assert_eq!(bodies[0]["data"]["active"], false);
    assert_eq!(bodies[1]["data"]["active"], true);
    assert_eq!(bodies[1]["data"]["last4"], "6789");
    assert_eq!(bodies[1]["data"]["exp_month"], 1);
    assert_eq!(world.complete(&page, json!({ "outcome": "success" })).await.0, 409);
}

#[tokio::test]
async fn a_debit_is_processing_until_the_bank_responds() {
    let world = World::new().await;
    let code = active(&world).await;
    let path = "/transaction/charge_authorization";
    let data = world.post(path, charge(&code, "debit-1")).await["data"].clone();
    assert_eq!((&data["status"], &data["channel"]), (&json!("processing"), &json!("direct_debit")));
    assert_eq!(data["authorization"]["last4"], Value::Null);
    world.advance(10).await;
    assert_eq!(world.verify("debit-1").await["status"], "success");
    assert_eq!(world.notification_events().await.last().unwrap(), "charge.success");

    world.simulators.faults().push(Fault::new("charge", FaultKind::Decline));
    world.post(path, charge(&code, "debit-2")).await;
    world.advance(10).await;
    assert_eq!(world.verify("debit-2").await["status"], "failed");

    world.simulators.faults().push(Fault::new("charge", FaultKind::Pending));
    world.post(path, charge(&code, "debit-3")).await;
    world.advance(60).await;
    assert_eq!(world.verify("debit-3").await["status"], "processing");
    assert!(world.simulators.paystack().resolve("debit-3", Outcome::Success));
    assert!(!world.simulators.paystack().resolve("debit-3", Outcome::Success));
    assert_eq!(world.verify("debit-3").await["status"], "success");
}

#[tokio::test]
async fn a_revoked_mandate_is_not_charged() {
    let world = World::new().await;
    let code = active(&world).await;
    world.post("/customer/authorization/deactivate", json!({ "authorization_code": code })).await;
    let refused =
        world.post_rejected("/transaction/charge_authorization", charge(&code, "no")).await;
    assert_eq!(refused.0, 400);
    let revoked = world.get("/directdebit/mandate-authorizations?status=revoked").await;
    assert_eq!(revoked["data"][0]["authorization_code"], code);
}

#[tokio::test]
async fn an_existing_customer_gets_a_mandate_and_can_retry_its_activation() {
    let world = World::new().await;
    active(&world).await;
    let list = world.get("/directdebit/mandate-authorizations").await["data"][0].clone();
    let customer = list["customer"]["customer_code"].as_str().unwrap();
    let body = json!({ "account": { "number": "0123456789", "bank_code": "058" } });
    let path = format!("/customer/{customer}/initialize-direct-debit");
    assert!(world.post(&path, body.clone()).await["data"]["redirect_url"].is_string());
    assert_eq!(world.post_rejected(&path, json!({})).await.1, "missing_params");
    assert_eq!(world.post_rejected("/customer/CUS_no/initialize-direct-debit", body).await.0, 404);
    let path = format!("/customer/{customer}/directdebit-activation-charge");
    let body = json!({ "authorization_id": list["authorization_id"] });
    let (status, response) = world.call(Method::PUT, &path, body).await;
    assert_eq!((status, &response["message"]), (200, &json!("Mandate is queued for retry")));
}
