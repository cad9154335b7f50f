use reqwest::Method;
use serde_json::{Value, json};

use crate::world::{KEY, SUCCESS, World};

#[tokio::test]
async fn initialization_returns_the_documented_shape() {
    let world = World::new().await;
    let body = json!({ "email": "a@b.co", "amount": "30050" });
    let response = world.post("/transaction/initialize", body).await;
    assert_eq!(response["message"], "Authorization URL created");
    let data = &response["data"];
    let url =
        format!("{}/checkout/{}", world.simulators.url(), data["access_code"].as_str().unwrap());
    assert_eq!(data["authorization_url"], url);
    assert_eq!(data["reference"].as_str().unwrap().len(), 10);
}

#[tokio::test]
async fn initialization_accepts_forms() {
    let world = World::new().await;
    let response = world
        .request(Method::POST, "/paystack/transaction/initialize")
        .bearer_auth(KEY)
        .header("content-type", "application/x-www-form-urlencoded")
        .body("email=a%40b.co&amount=100&reference=form-1&metadata[order]=7")
        .send()
        .await
        .unwrap();
    assert_eq!(response.status(), 200);
    assert_eq!(world.verify("form-1").await["metadata"], json!({ "order": "7" }));
}

#[tokio::test]
async fn metadata_may_be_a_json_string() {
    let world = World::new().await;
    let body = json!({
        "email": "a@b.co", "amount": 100, "reference": "text", "metadata": "{\"order\":7}",
    });
    world.post("/transaction/initialize", body).await;
    assert_eq!(world.verify("text").await["metadata"], json!({ "order": 7 }));
}

#[tokio::test]
async fn verification_has_the_documented_shape_before_and_after_payment() {
    let world = World::new().await;
    let id = world.initialize("pay-1").await;
    let before = world.verify("pay-1").await;
    assert_eq!(before["status"], "abandoned");
    assert_eq!(before["requested_amount"], 500_000);
    assert_eq!(before["paid_at"], Value::Null);
    assert_eq!(before["authorization"], json!({}));
    assert_eq!(before["log"], Value::Null);
    assert!(before["id"].as_u64().unwrap() > 1 << 32);

    assert_eq!(world.complete(&id, json!({ "outcome": "success" })).await.0, 200);
    let paid = world.verify("pay-1").await;
    assert_eq!(paid["status"], "success");
    assert_eq!(paid["amount"], 500_000);
    assert_eq!(paid["fees"], 17_500);
    assert_eq!(paid["paid_at"], "2026-11-21T10:00:00.000Z");
    assert_eq!(paid["paidAt"], paid["paid_at"]);
    assert_eq!(paid["createdAt"], paid["created_at"]);
    assert_eq!(paid["domain"], "test");
    assert_eq!(paid["log"]["success"], true);
    assert_eq!(paid["customer"]["email"], "ada@example.com");
    assert!(paid["customer"]["customer_code"].as_str().unwrap().starts_with("CUS_"));
    assert_eq!(paid["authorization"]["last4"], "4081");
    assert_eq!(paid["authorization"]["card_type"], "visa ");
    assert_eq!(paid["authorization"]["reusable"], true);
    assert_eq!(paid["authorization"]["exp_year"], "2030");
}

#[tokio::test]
async fn transactions_are_fetched_by_id_and_listed() {
    let world = World::new().await;
    world.initialize("one").await;
    let paid = world.pay("two", SUCCESS).await;
    let fetched = world.get(&format!("/transaction/{}", paid["id"])).await;
    assert_eq!(fetched["data"], paid);
    let all = world.get("/transaction?perPage=1").await;
    assert_eq!(all["data"][0]["reference"], "two");
    assert_eq!(all["meta"]["total"], 2);
    // Some client libraries send this path.
    assert_eq!(world.get("/transaction/?perPage=1").await["data"], all["data"]);
    let abandoned = world.get("/transaction?status=abandoned").await;
    assert_eq!(abandoned["data"][0]["reference"], "one");
}

#[tokio::test]
async fn invalid_requests_are_refused_with_codes() {
    let world = World::new().await;
    world.initialize("taken").await;
    let cases = [
        (json!({ "amount": 100 }), "missing_params"),
        (json!({ "email": "a@b.co" }), "missing_params"),
        (json!({ "email": "nobody", "amount": 100 }), "invalid_email_address"),
        (json!({ "email": "a@b.co", "amount": 0 }), "invalid_amount"),
        (json!({ "email": "a@b.co", "amount": "1.5" }), "invalid_amount"),
        (json!({ "email": "a@b.co", "amount": -5 }), "invalid_amount"),
        (json!({ "email": "a@b.co", "amount": 100, "currency": "EUR" }), "unsupported_currency"),
        (json!({ "email": "a@b.co", "amount": 100, "reference": "a_b" }), "invalid_reference"),
        (json!({ "email": "a@b.co", "amount": 100, "reference": "taken" }), "duplicate_reference"),
    ];
    for (body, code) in cases {
        let refused = world.post_rejected("/transaction/initialize", body.clone()).await;
        assert_eq!(refused, (400, code.to_owned()), "{body}");
    }
    let (status, body) = world.call(Method::GET, "/transaction/verify/none", Value::Null).await;
    assert_eq!((status, &body["code"]), (404, &json!("transaction_not_found")));
    let (status, _) = world.call(Method::GET, "/nothing/here", Value::Null).await;
    assert_eq!(status, 404);
}

#[tokio::test]
async fn keys_are_required_and_isolate_accounts() {
    let world = World::new().await;
    world.initialize("mine").await;
    for key in ["", "pk_test_x", "sk_test_"] {
        let request =
            world.request(Method::GET, "/paystack/transaction/verify/mine").bearer_auth(key);
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), 401);
        assert_eq!(response.json::<Value>().await.unwrap()["message"], "Invalid key");
    }
    let request = world.request(Method::GET, "/paystack/transaction/verify/mine");
    let response = request.bearer_auth("sk_test_other").send().await.unwrap();
    assert_eq!(response.status(), 404);
}

#[tokio::test]
async fn a_saved_card_is_charged_until_it_is_deactivated() {
    let world = World::new().await;
    let code = world.pay("first", SUCCESS).await["authorization"]["authorization_code"].clone();
    let charge = |reference: &str, email: &str| json!({ "email": email, "amount": 100, "authorization_code": code, "reference": reference });
    let path = "/transaction/charge_authorization";
    let response = world.post(path, charge("second", "ada@example.com")).await;
    assert_eq!(response["message"], "Charge attempted");
    assert_eq!(response["data"]["status"], "success");
    assert_eq!(response["data"]["authorization"]["authorization_code"], code);
    assert_eq!(world.post_rejected(path, charge("third", "eve@example.com")).await.0, 400);
    let again = world.post_rejected(path, charge("second", "ada@example.com")).await;
    assert_eq!(again.1, "duplicate_reference");

    let body = json!({ "authorization_code": code });
    let response = world.post("/customer/authorization/deactivate", body).await;
    assert_eq!(response["message"], "Authorization has been deactivated");
    assert_eq!(world.post_rejected(path, charge("fourth", "ada@example.com")).await.0, 400);
    let unknown = json!({ "authorization_code": "AUTH_none" });
    assert_eq!(world.post_rejected("/customer/authorization/deactivate", unknown).await.0, 400);
}

#[tokio::test]
async fn tampering_changes_the_verification() {
    let world = World::new().await;
    world.pay("lie", SUCCESS).await;
    let paystack = world.simulators.paystack();
    assert!(paystack.tamper("lie", 1, "USD"));
    assert!(!paystack.tamper("none", 1, "USD"));
    let verified = world.verify("lie").await;
    assert_eq!((&verified["amount"], &verified["currency"]), (&json!(1), &json!("USD")));
    assert_eq!(verified["requested_amount"], 1);
    let body = json!({ "reference": "lie", "taken_minor": 7 });
    let response = world.request(Method::PUT, "/paystack/tamper").json(&body).send().await.unwrap();
    assert_eq!(response.status(), 204);
    let verified = world.verify("lie").await;
    assert_eq!((&verified["amount"], &verified["requested_amount"]), (&json!(7), &json!(1)));
    assert!(!paystack.tamper_charged_amount("none", 7));

    let body = json!({ "reference": "lie", "reversed": true });
    let response = world.request(Method::PUT, "/paystack/tamper").json(&body).send().await.unwrap();
    assert_eq!(response.status(), 204);
    assert_eq!(world.verify("lie").await["status"], "reversed");
}

#[tokio::test]
async fn requests_are_recorded_except_controls() {
    let world = World::new().await;
    world.initialize("seen").await;
    world.verify("seen").await;
    let body = json!({ "secret_key": KEY, "url": "http://127.0.0.1:9/x" });
    let response =
        world.request(Method::PUT, "/paystack/webhook").json(&body).send().await.unwrap();
    assert_eq!(response.status(), 204);
    let seen = world.simulators.paystack().requests();
    let expected = [("POST", "/transaction/initialize"), ("GET", "/transaction/verify/seen")];
    assert_eq!(seen, expected.map(|(method, path)| (method.to_owned(), path.to_owned())));
}
