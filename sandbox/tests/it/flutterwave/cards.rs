use serde_json::{Value, json};

use super::{SUCCESS, Shop};

#[tokio::test]
async fn every_test_card_has_its_documented_outcome() {
    let shop = Shop::new().await;
    let approved = "Approved by Financial Institution";
    let cards = [
        (SUCCESS, "successful", approved, "PIN"),
        ("4187 4274 1556 4246", "successful", approved, "VBVSECURECODE"),
        ("5438898014560229", "successful", approved, "VBVSECURECODE"),
        ("5061460166976054667", "successful", approved, "NOAUTH"),
        ("4556052704172643", "successful", approved, "AVS_VBVSECURECODE"),
        ("5377283645077450", "successful", approved, "NOAUTH"),
        ("5531886652142968", "successful", approved, "PIN"),
        ("5258585922666506", "failed", "Insufficient Funds", "PIN"),
        ("5590131743294314", "failed", "Suspected Fraud", "PIN"),
        ("5143010522339965", "failed", "Do Not Honour", "PIN"),
    ];
    for (at, (number, status, response, auth_model)) in cards.into_iter().enumerate() {
        let verified = shop.pay(&format!("card-{at}"), number).await;
        assert_eq!(verified["status"], status, "{number}");
        assert_eq!(verified["processor_response"], response, "{number}");
        assert_eq!(verified["auth_model"], auth_model, "{number}");
        assert_eq!(verified["card"]["token"].is_string(), status == "successful", "{number}");
        assert_eq!(verified["app_fee"].is_null(), status == "failed", "{number}");
    }
}

#[tokio::test]
async fn a_card_is_described_as_documented() {
    let shop = Shop::new().await;
    let card = shop.pay("pay", SUCCESS).await["card"].clone();
    assert_eq!(card["first_6digits"], "553188");
    assert_eq!(card["last_4digits"], "2950");
    assert_eq!(card["type"], "MASTERCARD");
    assert_eq!(card["expiry"], "09/32");
    assert_eq!(card["country"], "NIGERIA NG");
    let token = card["token"].as_str().unwrap();
    assert!(token.starts_with("flw-t1nf-") && token.ends_with("-m03k"), "{token}");
}

#[tokio::test]
async fn a_declining_card_fails_for_every_outcome() {
    let shop = Shop::new().await;
    let page = shop.link("declined").await;
    let body = json!({ "outcome": "abandoned", "card": "5143010522339965" });
    assert_eq!(shop.world.complete(&page, body).await.1["outcome"], "failed");
    assert_eq!(shop.verify("declined").await["status"], "failed");
    let paystack = json!({ "outcome": "success", "card": crate::world::SUCCESS });
    assert_eq!(shop.world.complete(&page, paystack).await.0, 400);
}

#[tokio::test]
async fn a_bin_is_resolved() {
    let shop = Shop::new().await;
    let data = shop.get("/card-bins/553188").await["data"].clone();
    assert_eq!(data["issuing_country"], "NIGERIA NG");
    assert_eq!((&data["bin"], &data["card_type"]), (&json!("553188"), &json!("MASTERCARD")));
    assert_eq!(shop.refused("/card-bins/999999", Value::Null).await.0, 400);
}
