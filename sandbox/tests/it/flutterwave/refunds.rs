use serde_json::{Value, json};

use super::{SUCCESS, Shop, order};

async fn refund(shop: &Shop, transaction: &Value, body: Value) -> Value {
    let response = shop.post(&format!("/transactions/{transaction}/refund"), body).await;
    assert_eq!(response["message"], "Transaction refund initiated");
    response["data"].clone()
}

#[tokio::test]
async fn a_refund_is_initiated_at_once_and_disbursed_after_ten_seconds() {
    let shop = Shop::new().await;
    let id = shop.pay("pay", SUCCESS).await["id"].clone();
    let begun = refund(&shop, &id, json!({ "amount": "1000.50", "comments": "sorry" })).await;
    assert_eq!(begun["amount_refunded"].to_string(), "1000.5");
    assert_eq!((&begun["status"], &begun["tx_id"]), (&json!("completed"), &id));
    assert_eq!(begun["destination"], "payment_source");
    assert_eq!(begun["meta"], json!({ "source": "availablebalance" }));
    assert!(begun["flw_ref"].as_str().unwrap().starts_with("URF_"));
    let path = format!("/refunds/{}", begun["id"]);
    shop.world.advance(9).await;
    assert_eq!(shop.get(&path).await["data"]["status"], "completed");
    shop.world.advance(1).await;
    let arrived = shop.get(&path).await["data"].clone();
    assert_eq!(arrived["status"], "completed-mpgs");
    // A string here, an object in the response to the new refund.
    assert_eq!(arrived["meta"], r#"{"source":"availablebalance"}"#);
    assert_eq!((&arrived["transaction_id"], &arrived["comment"]), (&id, &json!("sorry")));
    assert_eq!(shop.verify("pay").await["status"], "successful");
}

#[tokio::test]
async fn refunds_never_exceed_the_payment_and_are_listed_by_its_id() {
    let shop = Shop::new().await;
    let id = shop.pay("pay", SUCCESS).await["id"].clone();
    let other = shop.pay("other", SUCCESS).await["id"].clone();
    let path = format!("/transactions/{id}/refund");
    let first = refund(&shop, &id, json!({ "amount": 3_000 })).await;
    assert_eq!(shop.refused(&path, json!({ "amount": 2_000.01 })).await.0, 400);
    let rest = refund(&shop, &id, json!({})).await;
    assert_eq!(rest["amount_refunded"], 2_000);
    let again = shop.refused(&path, json!({})).await;
    assert_eq!(again, (400, "Transaction has been refunded already".to_owned()));

    refund(&shop, &other, json!({})).await;
    let found = shop.get(&format!("/refunds?id={id}")).await;
    let ids: Vec<&Value> = found["data"].as_array().unwrap().iter().map(|r| &r["id"]).collect();
    assert_eq!(ids, [&rest["id"], &first["id"]]);
    assert_eq!(found["meta"]["page_info"]["total"], 2);
    assert_eq!(shop.get("/refunds").await["data"].as_array().unwrap().len(), 3);
    assert_eq!(shop.get("/refunds?id=1").await["data"], json!([]));
}

#[tokio::test]
async fn a_refund_made_on_the_dashboard_is_listed() {
    let shop = Shop::new().await;
    let id = shop.pay("pay", SUCCESS).await["id"].clone();
    shop.pay("failed", "5258585922666506").await;
    let flutterwave = shop.world.simulators.flutterwave();
    assert!(flutterwave.refund("pay", Some(100_050)));
    assert!(!flutterwave.refund("pay", Some(399_951)));
    assert!(flutterwave.refund("pay", None));
    assert!(!flutterwave.refund("pay", None));
    assert!(!flutterwave.refund("failed", None) && !flutterwave.refund("none", None));
    shop.world.advance(10).await;
    let listed = shop.get(&format!("/refunds?id={id}&status=completed-mpgs")).await["data"].clone();
    let amounts: Vec<&Value> =
        listed.as_array().unwrap().iter().map(|refund| &refund["amount_refunded"]).collect();
    assert_eq!(amounts, [&json!(3_999.5), &json!(1_000.5)]);
}

#[tokio::test]
async fn an_unpaid_transaction_is_not_refunded() {
    let shop = Shop::new().await;
    let failed = shop.pay("failed", "5258585922666506").await["id"].clone();
    let refused = shop.refused(&format!("/transactions/{failed}/refund"), json!({})).await;
    assert_eq!(refused, (400, "Only a successful transaction can be refunded".to_owned()));
    assert_eq!(shop.refused("/transactions/1/refund", json!({})).await.0, 404);
    assert_eq!(shop.refused("/refunds/1", Value::Null).await.0, 404);
}

#[tokio::test]
async fn refunds_to_a_failing_card_fail() {
    let shop = Shop::new().await;
    let id = shop.pay("pay", "5531886652142968").await["id"].clone();
    let begun = refund(&shop, &id, json!({})).await;
    shop.world.advance(10).await;
    let path = format!("/refunds/{}", begun["id"]);
    assert_eq!(shop.get(&path).await["data"]["status"], "failed");
    // The failed amount can be refunded again.
    refund(&shop, &id, json!({})).await;
}

#[tokio::test]
async fn without_a_card_a_refund_goes_to_the_bank() {
    let shop = Shop::new().await;
    let mut order = order("transfer");
    order["payment_options"] = json!("banktransfer");
    let link = shop.post("/payments", order).await["data"]["link"].clone();
    let page = link.as_str().unwrap().rsplit('/').next().unwrap().to_owned();
    shop.complete(&page, json!({ "outcome": "success" })).await;
    let id = shop.verify("transfer").await["id"].clone();
    let begun = refund(&shop, &id, json!({})).await;
    shop.world.advance(10).await;
    let path = format!("/refunds/{}", begun["id"]);
    assert_eq!(shop.get(&path).await["data"]["status"], "completed-bank-transfer");
}
