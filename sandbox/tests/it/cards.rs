use serde_json::json;

use crate::world::{SUCCESS, World};

#[tokio::test]
async fn every_test_card_has_its_documented_outcome() {
    let world = World::new().await;
    let cards = [
        (SUCCESS, "success", "Successful"),
        ("507850785078507812", "success", "Successful"),
        ("5060 6666 6666 6666 666", "success", "Successful"),
        ("507850785078507804", "success", "Successful"),
        ("5192602720584796", "success", "Successful"),
        ("4084080000671803", "success", "Successful"),
        ("4084080000671902", "success", "Successful"),
        ("4084080000005408", "failed", "Declined"),
        ("4084080000670037", "failed", "Insufficient Funds"),
        (
            "507850785078507853",
            "failed",
            "Token Not Generated. Customer Not Registered on Token Platform",
        ),
    ];
    for (at, (number, status, response)) in cards.into_iter().enumerate() {
        let verified = world.pay(&format!("card-{at}"), number).await;
        assert_eq!(verified["status"], status, "{number}");
        assert_eq!(verified["gateway_response"], response, "{number}");
        assert_eq!(verified["authorization"]["reusable"], status == "success", "{number}");
    }
}

#[tokio::test]
async fn a_declining_card_fails_for_every_outcome() {
    let world = World::new().await;
    let id = world.initialize("declined").await;
    let body = json!({ "outcome": "abandoned", "card": "4084080000005408" });
    assert_eq!(world.complete(&id, body).await.1["outcome"], "failed");
    assert_eq!(world.verify("declined").await["status"], "failed");
}

#[tokio::test]
async fn a_card_has_one_signature_per_account_and_a_new_code_per_payment() {
    let world = World::new().await;
    let one = world.pay("one", SUCCESS).await["authorization"].clone();
    let two = world.pay("two", SUCCESS).await["authorization"].clone();
    let other = world.pay("three", "5192602720584796").await["authorization"].clone();
    assert_eq!(one["signature"], two["signature"]);
    assert_ne!(one["authorization_code"], two["authorization_code"]);
    assert_ne!(one["signature"], other["signature"]);
    assert!(one["signature"].as_str().unwrap().starts_with("SIG_"));
    assert_eq!(other["brand"], "mastercard");
}

#[tokio::test]
async fn a_bin_is_resolved() {
    let world = World::new().await;
    let response = world.get("/decision/bin/408408").await;
    assert_eq!(response["data"]["brand"], "Visa");
    assert_eq!(response["data"]["country_code"], "NG");
    let (status, _) = world.call(reqwest::Method::GET, "/decision/bin/999999", json!(null)).await;
    assert_eq!(status, 400);
}
