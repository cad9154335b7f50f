use reqwest::Method;
use serde_json::{Value, json};
use tollhouse_sandbox::{Fault, FaultKind, Outcome};

use super::{Shop, charge};

const PATH: &str = "/tokenized-charges";

#[tokio::test]
async fn a_saved_card_is_charged_again() {
    let shop = Shop::new().await;
    let token = shop.saved("first").await;
    let response = shop.post(PATH, charge(&token, "second")).await;
    assert_eq!(response["message"], "Charge successful");
    let data = &response["data"];
    assert_eq!((&data["status"], &data["auth_model"]), (&json!("successful"), &json!("noauth")));
    assert_eq!(data["amount"].to_string(), "1250.5");
    assert_eq!(data["card"]["token"], token);
    assert_eq!(*data, shop.verify("second").await);
    assert_eq!(shop.notified().await.len(), 2);
}

#[tokio::test]
async fn a_token_belongs_to_its_customer_and_a_reference_is_used_once() {
    let shop = Shop::new().await;
    let token = shop.saved("first").await;
    let with = |name: &str, value: Value| {
        let mut charge = charge(&token, "new");
        charge[name] = value;
        charge
    };
    let cases = [
        (with("email", json!("eve@example.com")), "Wrong token or email passed"),
        (with("token", json!("flw-t1nf-none-m03k")), "Wrong token or email passed"),
        (
            with("token", json!("flw-1bt-none-k3n")),
            "Wrong account token or customer email passed in.",
        ),
        (with("tx_ref", json!("first")), "Duplicate transaction reference: tx_ref must be unique"),
        (with("currency", json!(null)), "currency is required"),
        (with("amount", json!(null)), "amount is required"),
    ];
    for (body, message) in cases {
        assert_eq!(shop.refused(PATH, body).await, (400, message.to_owned()));
    }
}

#[tokio::test]
async fn a_challenge_is_completed_on_the_banks_page() {
    let shop = Shop::new().await;
    let token = shop.saved("first").await;
    let mut by_request = charge(&token, "asked");
    by_request["do_3ds"] = json!(true);
    by_request["redirect_url"] = json!("https://shop.test/3ds");
    let scripted = charge(&token, "scripted");
    for (tx_ref, body) in [("asked", by_request), ("scripted", scripted)] {
        if tx_ref == "scripted" {
            shop.world.simulators.faults().push(Fault::new("charge", FaultKind::Challenge));
        }
        let response = shop.post(PATH, body).await;
        assert_eq!(response["message"], "Charge initiated");
        assert_eq!(response["data"]["status"], "pending");
        let authorization = &response["meta"]["authorization"];
        assert_eq!(authorization["mode"], "redirect");
        assert_eq!(shop.verify(tx_ref).await["status"], "pending auth");
        let redirect = authorization["redirect"].as_str().unwrap();
        let page = redirect.rsplit('/').next().unwrap();
        let back = shop.complete(page, json!({ "outcome": "success" })).await;
        let paid = shop.verify(tx_ref).await;
        assert_eq!((&paid["status"], &paid["card"]["token"]), (&json!("successful"), &token));
        if tx_ref == "asked" {
            let id = &paid["id"];
            let expected =
                format!("https://shop.test/3ds?status=successful&tx_ref=asked&transaction_id={id}");
            assert_eq!(back, expected);
        }
        assert_eq!(shop.world.complete(page, json!({ "outcome": "success" })).await.0, 409);
    }
}

#[tokio::test]
async fn a_failed_challenge_cannot_be_repeated() {
    let shop = Shop::new().await;
    let token = shop.saved("first").await;
    shop.world.simulators.faults().push(Fault::new("charge", FaultKind::Challenge));
    let response = shop.post(PATH, charge(&token, "failed")).await;
    let redirect = response["meta"]["authorization"]["redirect"].as_str().unwrap();
    let page = redirect.rsplit('/').next().unwrap();
    shop.complete(page, json!({ "outcome": "failed" })).await;
    assert_eq!(shop.verify("failed").await["status"], "failed");
    assert_eq!(shop.world.complete(page, json!({ "outcome": "success" })).await.0, 409);
}

#[tokio::test]
async fn a_charge_can_be_declined_or_left_pending() {
    let shop = Shop::new().await;
    let token = shop.saved("first").await;
    let faults = shop.world.simulators.faults();
    faults.push(Fault::new("charge", FaultKind::Decline));
    let declined = shop.post(PATH, charge(&token, "declined")).await["data"].clone();
    assert_eq!(declined["status"], "failed");
    assert_eq!(declined["processor_response"], "Insufficient Funds");

    for (tx_ref, outcome, status) in [
        ("good", Outcome::Success, "successful"),
        ("bad", Outcome::Failed, "failed"),
        ("gone", Outcome::Abandoned, "cancelled"),
    ] {
        faults.push(Fault::new("charge", FaultKind::Pending));
        let response = shop.post(PATH, charge(&token, tx_ref)).await;
        assert_eq!(response["message"], "Charge initiated");
        assert_eq!(shop.verify(tx_ref).await["status"], "pending");
        assert!(shop.world.simulators.flutterwave().resolve(tx_ref, outcome));
        assert!(!shop.world.simulators.flutterwave().resolve(tx_ref, outcome));
        assert_eq!(shop.verify(tx_ref).await["status"], status);
    }
}

#[tokio::test]
async fn a_saved_card_follows_its_customers_new_address() {
    let shop = Shop::new().await;
    let token = shop.saved("first").await;
    let path = format!("/tokens/{}", token.as_str().unwrap());
    let body = json!({
        "email": "ada@new.example", "full_name": "Ada Eze", "phone_number": "0900",
    });
    let data = shop.ok(Method::PUT, &path, body.clone()).await["data"].clone();
    assert_eq!(data["customer_email"], "ada@new.example");
    assert_eq!(data["customer_full_name"], "Ada Eze");
    assert_eq!(data["customer_phone_number"], "0900");
    assert_eq!(shop.refused(PATH, charge(&token, "old")).await.0, 400);
    let mut moved = charge(&token, "new");
    moved["email"] = json!("ada@new.example");
    assert_eq!(shop.post(PATH, moved).await["data"]["status"], "successful");
    assert_eq!(shop.call(Method::PUT, "/tokens/none", body).await.0, 400);
}
