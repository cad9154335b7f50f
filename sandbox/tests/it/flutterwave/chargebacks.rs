use reqwest::Method;
use serde_json::{Value, json};
use tollhouse_sandbox::flutterwave::ChargebackStatus;

use super::{SUCCESS, Shop};

async fn listed(shop: &Shop, query: &str) -> Vec<Value> {
    let list = shop.get(&format!("/chargebacks{query}")).await;
    assert_eq!(list["message"], "Chargebacks fetched");
    list["data"].as_array().unwrap().clone()
}

#[tokio::test]
async fn a_chargeback_has_the_documented_shape() {
    let shop = Shop::new().await;
    let paid = shop.pay("pay", SUCCESS).await;
    let flutterwave = shop.world.simulators.flutterwave();
    assert!(flutterwave.charge_back("pay", Some(123_450), ChargebackStatus::Accepted));
    let found = listed(&shop, "").await.remove(0);
    assert!(found["id"].is_u64() && found["meta"]["history"].is_array(), "{found}");
    assert_eq!(
        (&found["amount"], &found["status"], &found["stage"]),
        (&json!(1_234.5), &json!("accepted"), &json!("new"))
    );
    assert_eq!(
        (&found["transaction_id"], &found["tx_ref"], &found["flw_ref"]),
        (&paid["id"], &json!("pay"), &paid["flw_ref"])
    );
    assert_eq!(
        (&found["created_at"], &found["due_date"]),
        (&json!("2026-11-21T10:00:00.000Z"), &json!("2026-11-23T10:00:00.000Z"))
    );
    // The transaction itself does not show it, and no webhook is sent.
    assert_eq!(shop.verify("pay").await, paid);
    assert_eq!(shop.notified().await.len(), 1);
}

#[tokio::test]
async fn chargebacks_are_decided_once() {
    let shop = Shop::new().await;
    shop.pay("pay", SUCCESS).await;
    shop.pay("failed", "5258585922666506").await;
    let flutterwave = shop.world.simulators.flutterwave();
    use ChargebackStatus::{Declined, Initiated, Lost, Won};
    for (tx_ref, amount, status, done, expected) in [
        ("pay", None, Initiated, true, vec![("initiated", 5_000)]),
        ("pay", Some(300_000), Declined, true, vec![("declined", 3_000)]),
        // The dispute goes on in another stage.
        ("pay", Some(300_000), Lost, true, vec![("lost", 3_000), ("declined", 3_000)]),
        ("failed", None, Lost, false, vec![("lost", 3_000), ("declined", 3_000)]),
        ("none", None, Won, false, vec![("lost", 3_000), ("declined", 3_000)]),
    ] {
        assert_eq!(flutterwave.charge_back(tx_ref, amount, status), done);
        let found = listed(&shop, "").await;
        let found: Vec<(&str, u64)> = found
            .iter()
            .map(|c| (c["status"].as_str().unwrap(), c["amount"].as_u64().unwrap()))
            .collect();
        assert_eq!(found, expected);
    }
}

#[tokio::test]
async fn chargebacks_are_filtered_and_paged() {
    let shop = Shop::new().await;
    let one = shop.pay("one", SUCCESS).await;
    let two = shop.pay("two", SUCCESS).await;
    let flutterwave = shop.world.simulators.flutterwave();
    for _ in 0..20 {
        assert!(flutterwave.charge_back("one", Some(100), ChargebackStatus::Won));
    }
    shop.world.advance(24 * 3_600).await;
    assert!(flutterwave.charge_back("two", None, ChargebackStatus::Lost));
    for (query, count) in [
        (String::new(), 20),
        ("?page=2".to_owned(), 1),
        ("?page=3".to_owned(), 0),
        (format!("?id={}", two["id"]), 1),
        (format!("?flw_ref={}&page=1", one["flw_ref"].as_str().unwrap()), 20),
        ("?status=lost".to_owned(), 1),
        ("?status=initiated".to_owned(), 0),
        ("?currency=USD".to_owned(), 0),
        ("?currency=NGN&from=2026-11-22".to_owned(), 1),
        ("?from=2026-11-21&to=2026-11-21&page=1".to_owned(), 20),
        ("?id=1".to_owned(), 0),
    ] {
        assert_eq!(listed(&shop, &query).await.len(), count, "{query}");
    }
    let info = shop.get("/chargebacks?page=2").await["meta"]["page_info"].clone();
    let expected = json!({ "total": 21, "current_page": 2, "total_pages": 2, "page_size": 20 });
    assert_eq!(info, expected);
    // Accounts are isolated.
    let request = shop.world.request(Method::GET, "/flutterwave/v3/chargebacks");
    let other = request.bearer_auth("FLWSECK_TEST-other-X").send().await.unwrap();
    assert_eq!(other.json::<Value>().await.unwrap()["data"], json!([]));
    assert_eq!(
        shop.world
            .request(Method::GET, "/flutterwave/v3/chargebacks")
            .send()
            .await
            .unwrap()
            .status(),
        401
    );
}

#[tokio::test]
async fn the_control_endpoint_begins_and_decides_chargebacks() {
    let shop = Shop::new().await;
    shop.pay("pay", SUCCESS).await;
    let control = async |body: Value| {
        let request = shop.world.request(Method::POST, "/flutterwave/chargeback").json(&body);
        request.send().await.unwrap().status().as_u16()
    };
    assert_eq!(control(json!({ "reference": "pay", "status": "initiated" })).await, 204);
    assert_eq!(control(json!({ "reference": "pay", "amount_minor": 100_000 })).await, 204);
    let found = listed(&shop, "").await;
    assert_eq!((&found[0]["status"], &found[0]["amount"]), (&json!("lost"), &json!(1_000)));
    assert_eq!((found.len(), control(json!({ "reference": "none" })).await), (1, 404));
    assert_eq!(control(json!({ "reference": "pay", "status": "regretted" })).await, 400);
    assert_eq!(control(json!({ "reference": "pay", "won": true })).await, 404);
    assert_eq!(control(json!({ "reference": "pay", "status": "declined" })).await, 204);
    assert_eq!(control(json!({ "reference": "pay", "won": true })).await, 204);
    assert_eq!(listed(&shop, "?status=won").await.len(), 1);
    let flutterwave = shop.world.simulators.flutterwave();
    assert!(flutterwave.requests().iter().all(|(_, path)| path != "/chargeback"));
}

async fn answer(shop: &Shop, id: u64, body: Value) -> (u16, String) {
    let (status, body) = shop.call(Method::PUT, &format!("/chargebacks/{id}"), body).await;
    assert_eq!(body["data"], Value::Null, "{body}");
    (status, body["message"].as_str().unwrap().to_owned())
}

#[tokio::test]
async fn chargebacks_are_accepted_or_contested_once() {
    let shop = Shop::new().await;
    let flutterwave = shop.world.simulators.flutterwave();
    let proof = "https://shop.test/receipt.pdf";
    for (tx_ref, body, message, status) in [
        (
            "kept",
            json!({ "action": "accept", "comment": "Sorry" }),
            "Chargeback accepted",
            "accepted",
        ),
        (
            "contested",
            json!({ "action": "decline", "comment": "Sent", "uploaded_proof": proof }),
            "Chargeback declined",
            "declined",
        ),
    ] {
        let paid = shop.pay(tx_ref, SUCCESS).await;
        assert!(flutterwave.charge_back(tx_ref, None, ChargebackStatus::Initiated));
        let id = flutterwave.chargeback(tx_ref).unwrap();
        assert_eq!(answer(&shop, id, body.clone()).await, (200, message.to_owned()));
        let found = listed(&shop, &format!("?id={}", paid["id"])).await.remove(0);
        assert_eq!((&found["id"], &found["status"]), (&json!(id), &json!(status)));
        assert_eq!(
            found["meta"]["uploaded_proof"],
            *body.get("uploaded_proof").unwrap_or(&Value::Null)
        );
        assert_eq!(answer(&shop, id, body).await.0, 400);
        // The transaction itself does not show it.
        assert_eq!(shop.verify(tx_ref).await, paid);
    }
}

#[tokio::test]
async fn contested_chargebacks_are_decided() {
    let shop = Shop::new().await;
    let flutterwave = shop.world.simulators.flutterwave();
    for (tx_ref, status, won, decided) in [
        ("one", ChargebackStatus::Declined, true, "won"),
        ("two", ChargebackStatus::Declined, false, "lost"),
        ("three", ChargebackStatus::Initiated, false, "lost"),
    ] {
        shop.pay(tx_ref, SUCCESS).await;
        assert!(flutterwave.charge_back(tx_ref, None, status));
        let id = flutterwave.chargeback(tx_ref).unwrap();
        assert!(flutterwave.decide_chargeback(id, won));
        assert!(!flutterwave.decide_chargeback(id, !won));
        assert_eq!(listed(&shop, "").await[0]["status"], decided);
    }
    assert!(!flutterwave.decide_chargeback(1, true));
    assert_eq!(flutterwave.chargeback("none"), None);
}

#[tokio::test]
async fn invalid_answers_are_rejected() {
    let shop = Shop::new().await;
    shop.pay("pay", SUCCESS).await;
    let flutterwave = shop.world.simulators.flutterwave();
    assert!(flutterwave.charge_back("pay", None, ChargebackStatus::Initiated));
    let id = flutterwave.chargeback("pay").unwrap();
    for body in [
        json!({}),
        json!({ "action": "regret", "comment": "x" }),
        json!({ "action": true, "comment": "x" }),
        json!({ "action": "accept" }),
        json!({ "action": "accept", "comment": {} }),
        json!({ "action": "decline", "comment": "x", "uploaded_proof": 1 }),
        json!({ "action": "decline", "comment": "x", "uploaded_proof": "receipt" }),
    ] {
        assert_eq!(answer(&shop, id, body.clone()).await.0, 400, "{body}");
    }
    let valid = json!({ "action": "accept", "comment": "Sorry" });
    assert_eq!(answer(&shop, 1, valid.clone()).await.0, 404);
    // Accounts are isolated.
    let path = format!("/flutterwave/v3/chargebacks/{id}");
    let request = shop.world.request(Method::PUT, &path).bearer_auth("FLWSECK_TEST-other-X");
    assert_eq!(request.json(&valid).send().await.unwrap().status(), 404);
    assert_eq!(listed(&shop, "").await[0]["status"], "initiated");
}
