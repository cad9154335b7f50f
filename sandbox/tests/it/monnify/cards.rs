use reqwest::Method;
use serde_json::{Value, json};

use super::{KEY, SUCCESS, Shop};

#[tokio::test]
async fn every_test_card_has_its_documented_outcome() {
    let shop = Shop::new().await;
    let cards = [
        (SUCCESS, "PAID"),
        ("5060 9959 9424 7093", "PAID"),
        ("4000000000000002", "PAID"),
        ("5061020000000000094", "PAID"),
        ("5061020000000000086", "PAID"),
        ("4111111111111110", "FAILED"),
        ("4000000000009995", "FAILED"),
    ];
    for (at, (number, status)) in cards.into_iter().enumerate() {
        let paid = shop.pay(&format!("card-{at}"), number).await;
        assert_eq!(paid["paymentStatus"], status, "{number}");
        assert_eq!(paid["cardDetails"]["cardToken"].is_string(), status == "PAID", "{number}");
        assert_eq!(paid["cardDetails"]["reusable"], status == "PAID", "{number}");
    }
}

#[tokio::test]
async fn a_card_is_described_as_documented() {
    let shop = Shop::new().await;
    let card = shop.pay("pay", SUCCESS).await["cardDetails"].clone();
    let token = card["cardToken"].as_str().unwrap();
    assert!(token.starts_with("MNFY_") && token.len() == 37, "{token}");
    let expected = json!({
        "cardType": "VISA", "last4": "1111", "expMonth": "12", "expYear": "30", "bin": "411111",
        "bankCode": null, "bankName": null, "reusable": true, "countryCode": null,
        "cardToken": token, "supportsTokenization": true, "maskedPan": "411111******1111",
    });
    assert_eq!(card, expected);
}

#[tokio::test]
async fn without_tokenization_a_payment_returns_no_token() {
    let shop = Shop::new().await;
    shop.world.simulators.monnify().set_tokenization(KEY, false);
    let card = shop.pay("pay", SUCCESS).await["cardDetails"].clone();
    assert_eq!((&card["cardToken"], &card["reusable"]), (&Value::Null, &json!(false)));
}

#[tokio::test]
async fn a_declining_card_fails_for_every_outcome() {
    let shop = Shop::new().await;
    let page = shop.page("declined").await;
    let body = json!({ "outcome": "abandoned", "card": "4000000000009995" });
    assert_eq!(shop.world.complete(&page, body).await.1["outcome"], "failed");
    assert_eq!(shop.status("declined").await["paymentStatus"], "FAILED");
    let foreign = json!({ "outcome": "success", "card": "5531886652142950" });
    assert_eq!(shop.world.complete(&page, foreign).await.0, 400);
}

#[tokio::test]
async fn other_methods_need_no_card() {
    let shop = Shop::new().await;
    let mut order = super::order("ussd");
    order["paymentMethods"] = json!(["USSD"]);
    let path = "/v1/merchant/transactions/init-transaction";
    let page = super::last_step(&shop.ok(Method::POST, path, order).await["checkoutUrl"]);
    let by_card = json!({ "outcome": "success", "card": SUCCESS });
    assert_eq!(shop.world.complete(&page, by_card).await.0, 400);
    shop.complete(&page, json!({ "outcome": "success" })).await;
    let paid = shop.status("ussd").await;
    assert_eq!((&paid["paymentMethod"], &paid["cardDetails"]), (&json!("USSD"), &Value::Null));
}
