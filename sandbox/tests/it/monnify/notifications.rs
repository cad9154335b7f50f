use reqwest::Method;
use serde_json::{Value, json};
use tollhouse_sandbox::monnify::{self, UnderpaymentPolicy};

use super::{KEY, SECRET, SUCCESS, Shop, last_step, order};

#[test]
fn signatures_match_the_known_vector() {
    let body =
        br#"{"eventType":"SUCCESSFUL_TRANSACTION","eventData":{"paymentReference":"pay-1"}}"#;
    let signature = "9455b60b54102c5a72f9bb31e6a399f37a62311110aa6e3945ceb825924f59b5e92aeefc78f696d957fbf0495baca66bcdac8b2a3dee2a453d18ea33d2ebfa90";
    assert_eq!(monnify::sign(SECRET, body), signature);
}

#[tokio::test]
async fn a_success_sends_a_signed_webhook_and_a_failure_none() {
    let shop = Shop::new().await;
    shop.pay("bad", "4111111111111110").await;
    let paid = shop.pay("good", SUCCESS).await;
    assert_eq!(shop.events().await, ["SUCCESSFUL_TRANSACTION"]);
    let (headers, body) = shop.world.receiver.received().remove(0);
    assert_eq!(headers["monnify-signature"], monnify::sign(SECRET, body.as_bytes()));
    let data = &shop.world.receiver.bodies()[0]["eventData"];
    // Numbers and ISO 8601 here; strings and the day first in the status response.
    assert_eq!((&data["amountPaid"], &data["settlementAmount"]), (&json!(5_000), &json!(4_925)));
    assert_eq!(data["paidOn"], "2026-11-21T11:00:00.000");
    assert_eq!(data["paymentStatus"], "PAID");
    assert_eq!(data["paymentSourceInformation"], json!([]));
    for same in ["transactionReference", "product", "customer", "metaData", "cardDetails"] {
        assert_eq!(data[same], paid[same], "{same}");
    }
}

#[tokio::test]
async fn a_transfer_has_its_source_account() {
    let shop = Shop::new().await;
    let mut order = order("transfer");
    order["paymentMethods"] = json!(["ACCOUNT_TRANSFER"]);
    let path = "/v1/merchant/transactions/init-transaction";
    let page = last_step(&shop.post(path, order).await["checkoutUrl"]);
    shop.complete(&page, json!({ "outcome": "success" })).await;
    let data = shop.notified().await[0]["eventData"].clone();
    assert_eq!(data["paymentSourceInformation"][0]["amountPaid"], 5_000);
    assert_eq!(data["cardDetails"], json!({}));
    assert!(data["destinationAccountInformation"]["bankCode"].is_string());
}

#[tokio::test]
async fn a_transfer_that_is_too_small_is_rejected() {
    let shop = Shop::new().await;
    shop.begin("small").await;
    assert!(shop.world.simulators.monnify().transfer(
        "small",
        400_000,
        UnderpaymentPolicy::Rejected
    ));
    let webhooks = shop.notified().await;
    assert_eq!(webhooks[0]["eventType"], "REJECTED_PAYMENT");
    let data = &webhooks[0]["eventData"];
    assert_eq!((&data["amount"], &data["paymentReference"]), (&json!(5_000), &json!("small")));
    assert_eq!(data["paymentSourceInformation"]["amountPaid"], 4_000);
    let rejection = &data["paymentRejectionInformation"];
    assert_eq!(rejection["rejectionReason"], "UNDER_PAYMENT");
    assert_eq!(rejection["expectedAmount"], 5_000);
}

#[tokio::test]
async fn a_failing_receiver_gets_twelve_attempts() {
    let shop = Shop::new().await;
    shop.world.receiver.respond_with(500);
    shop.pay("good", SUCCESS).await;
    assert_eq!(shop.notified().await.len(), 1);
    shop.world.advance(299).await;
    assert_eq!(shop.world.receiver.received().len(), 1);
    for _ in 0..20 {
        shop.world.advance(300).await;
    }
    assert_eq!(shop.world.receiver.received().len(), 12);
}

#[tokio::test]
async fn the_webhook_is_set_over_http() {
    let shop = Shop::new().await;
    let url = format!("{}/other", shop.world.receiver.url);
    let body = json!({ "api_key": KEY, "secret_key": SECRET, "url": url });
    let set = async |body: Value| {
        let request = shop.world.request(Method::PUT, "/monnify/webhook").json(&body);
        request.send().await.unwrap().status().as_u16()
    };
    assert_eq!(set(body).await, 204);
    assert_eq!(set(json!({ "api_key": "x", "secret_key": SECRET, "url": url })).await, 400);
    shop.pay("good", SUCCESS).await;
    assert_eq!(shop.notified().await.len(), 1);
}
