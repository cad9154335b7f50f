use serde_json::{Value, json};

use crate::world::{SUCCESS, World};

async fn refund(world: &World, body: Value) -> Value {
    let response = world.post("/refund", body).await;
    assert_eq!(response["message"], "Refund has been queued for processing");
    response["data"].clone()
}

#[tokio::test]
async fn a_full_refund_is_processed_after_ten_seconds() {
    let world = World::new().await;
    world.pay("pay", SUCCESS).await;
    let refund = refund(&world, json!({ "transaction": "pay", "merchant_note": "sorry" })).await;
    assert_eq!(refund["status"], "pending");
    assert_eq!(refund["amount"], 500_000);
    assert_eq!(refund["transaction"]["reference"], "pay");
    assert_eq!(refund["merchant_note"], "sorry");
    assert_eq!(refund["customer_note"], "Refund for transaction pay");

    world.advance(9).await;
    let path = format!("/refund/{}", refund["id"]);
    let fetched = world.get(&path).await["data"].clone();
    assert_eq!(fetched["status"], "pending");
    assert_eq!(fetched["transaction"], refund["transaction"]["id"]);
    world.advance(1).await;
    assert_eq!(world.get(&path).await["data"]["status"], "processed");
    assert_eq!(world.verify("pay").await["status"], "reversed");
    assert_eq!(
        world.notification_events().await,
        ["charge.success", "refund.pending", "refund.processed"]
    );
    let bodies = world.receiver.bodies();
    assert_eq!(bodies[1]["data"]["amount"], "500000");
    assert_eq!(bodies[2]["data"]["amount"], 500_000);
    assert_eq!(bodies[2]["data"]["transaction_reference"], "pay");
}

#[tokio::test]
async fn refunds_never_exceed_the_payment() {
    let world = World::new().await;
    let paid = world.pay("pay", SUCCESS).await;
    refund(&world, json!({ "transaction": paid["id"], "amount": 300_000 })).await;
    let more = json!({ "transaction": "pay", "amount": 200_001 });
    assert_eq!(world.post_rejected("/refund", more).await, (400, "invalid_amount".to_owned()));
    refund(&world, json!({ "transaction": "pay", "amount": "200000" })).await;
    let more = world.post_rejected("/refund", json!({ "transaction": "pay" })).await;
    assert_eq!(more.1, "transaction_reversed");
    world.advance(10).await;
    let list = world.get("/refund?transaction=pay").await;
    assert_eq!(list["data"].as_array().unwrap().len(), 2);
    assert_eq!(world.get("/refund?transaction=none").await["data"], json!([]));
}

#[tokio::test]
async fn an_unpaid_transaction_is_not_refunded() {
    let world = World::new().await;
    world.initialize("open").await;
    let refused = world.post_rejected("/refund", json!({ "transaction": "open" })).await;
    assert_eq!(refused.1, "transaction_not_paid");
    assert_eq!(world.post_rejected("/refund", json!({ "transaction": "none" })).await.0, 404);
    assert_eq!(world.post_rejected("/refund", json!({})).await.1, "missing_params");
    world.pay("paid", SUCCESS).await;
    let dollars = json!({ "transaction": "paid", "currency": "USD" });
    assert_eq!(world.post_rejected("/refund", dollars).await.1, "invalid_currency");
}

#[tokio::test]
async fn refunds_to_a_failing_card_fail() {
    let world = World::new().await;
    world.pay("pay", "4084080000671803").await;
    refund(&world, json!({ "transaction": "pay" })).await;
    world.advance(10).await;
    assert_eq!(world.notification_events().await.last().unwrap(), "refund.failed");
    assert_eq!(world.verify("pay").await["status"], "success");
    // The failed amount can be refunded again.
    refund(&world, json!({ "transaction": "pay" })).await;
}

#[tokio::test]
async fn a_refund_that_needs_attention_continues_with_bank_details() {
    let world = World::new().await;
    world.pay("pay", "4084080000671902").await;
    let id = refund(&world, json!({ "transaction": "pay" })).await["id"].clone();
    world.advance(10).await;
    assert_eq!(world.notification_events().await.last().unwrap(), "refund.needs-attention");
    let path = format!("/refund/retry_with_customer_details/{id}");
    assert_eq!(world.post_rejected(&path, json!({})).await.1, "missing_params");
    let details = json!({ "refund_account_details": {
        "currency": "NGN", "account_number": "0001234567", "bank_id": "9",
    } });
    assert_eq!(world.post(&path, details).await["data"]["status"], "processing");
    world.advance(10).await;
    assert_eq!(world.notification_events().await.last().unwrap(), "refund.processed");
}
