use reqwest::Method;
use serde_json::{Value, json};
use tollhouse_sandbox::flutterwave::{self, Webhook};

use super::{HASH, KEY, SUCCESS, Shop};

#[test]
fn signatures_match_the_known_vector() {
    let body = br#"{"event":"charge.completed","data":{"tx_ref":"pay-1"}}"#;
    assert_eq!(flutterwave::sign(HASH, body), "UX+0vDcfjwZZ5uGVO+SaKSRVqvM4MrxWZU/Lddr8lVs=");
}

#[tokio::test]
async fn webhooks_of_successes_and_failures_omit_token_and_meta() {
    let shop = Shop::new().await;
    for (tx_ref, card, status) in
        [("good", SUCCESS, "successful"), ("bad", "5258585922666506", "failed")]
    {
        let mut expected = shop.pay(tx_ref, card).await;
        let webhook = shop.notified().await.pop().unwrap();
        assert_eq!(webhook["event"], "charge.completed");
        assert_eq!(webhook["event.type"], "CARD_TRANSACTION");
        assert_eq!(webhook["data"]["status"], status);
        expected.as_object_mut().unwrap().remove("meta");
        expected["card"].as_object_mut().unwrap().remove("token");
        expected["card"]["country"] = json!("NG");
        assert_eq!(webhook["data"], expected);
    }
    let (headers, _) = shop.world.receiver.received().remove(0);
    assert_eq!(headers["verif-hash"], HASH);
    assert!(!headers.contains_key("flutterwave-signature"));
}

#[tokio::test]
async fn a_signature_is_sent_if_configured() {
    let shop = Shop::new().await;
    let webhook = Webhook::new(HASH, &shop.world.receiver.url).signed();
    shop.world.simulators.flutterwave().configure_webhook(KEY, webhook);
    shop.pay("one", SUCCESS).await;
    let url = &shop.world.receiver.url;
    let body = json!({ "secret_key": KEY, "hash": "other", "url": url, "signed": true });
    let request = shop.world.request(Method::PUT, "/flutterwave/webhook").json(&body);
    assert_eq!(request.send().await.unwrap().status(), 204);
    shop.pay("two", SUCCESS).await;
    shop.notified().await;
    for ((headers, body), hash) in shop.world.receiver.received().into_iter().zip([HASH, "other"]) {
        assert_eq!(headers["verif-hash"], hash);
        assert_eq!(headers["flutterwave-signature"], flutterwave::sign(hash, body.as_bytes()));
    }
    let odd = json!({ "secret_key": "sk_test_x", "hash": "h", "url": url });
    let request = shop.world.request(Method::PUT, "/flutterwave/webhook").json(&odd);
    assert_eq!(request.send().await.unwrap().status(), 400);
}

#[tokio::test]
async fn leaving_the_page_sends_no_webhook() {
    let shop = Shop::new().await;
    let page = shop.link("left").await;
    shop.complete(&page, json!({ "outcome": "abandoned" })).await;
    assert!(shop.notified().await.is_empty());
}

#[tokio::test]
async fn a_failing_receiver_gets_three_retries() {
    let shop = Shop::new().await;
    shop.world.receiver.respond_with(500);
    shop.pay("good", SUCCESS).await;
    assert_eq!(shop.notified().await.len(), 1);
    shop.world.advance(1_799).await;
    assert_eq!(shop.world.receiver.received().len(), 1);
    for _ in 0..10 {
        shop.world.advance(1_800).await;
    }
    assert_eq!(shop.world.receiver.received().len(), 4);
}

#[tokio::test]
async fn a_webhook_is_resent_on_demand() {
    let shop = Shop::new().await;
    let id = shop.pay("good", SUCCESS).await["id"].clone();
    let response = shop.post(&format!("/transactions/{id}/resend-hook"), Value::Null).await;
    assert_eq!(
        (&response["message"], &response["data"]),
        (&json!("hook sent successfully"), &json!("hook sent"))
    );
    let webhooks = shop.notified().await;
    assert_eq!(webhooks.len(), 2);
    assert_eq!(webhooks[0], webhooks[1]);
    assert_eq!(shop.refused("/transactions/1/resend-hook", json!({})).await.0, 400);
}
