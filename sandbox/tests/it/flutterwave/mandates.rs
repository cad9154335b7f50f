use reqwest::Method;
use serde_json::{Value, json};
use tollhouse_sandbox::{Fault, FaultKind, Outcome};

use super::{SUCCESS, Shop};

fn request() -> Value {
    json!({
        "email": "ada@example.com", "amount": 2_000, "address": "1 Allen Avenue",
        "phone_number": "0800", "account_bank": "058", "account_number": "0123456789",
        "start_date": "2026-11-22T00:00:00.000Z", "end_date": "2027-11-20T00:00:00.000Z",
        "narration": "loan 7",
    })
}

async fn tokenize(shop: &Shop) -> String {
    let response = shop.post("/accounts/tokenize", request()).await;
    response["data"]["reference"].as_str().unwrap().to_owned()
}

async fn fetch(shop: &Shop, reference: &str) -> Value {
    shop.get(&format!("/accounts/token/{reference}")).await["data"].clone()
}

/// Returns reference and token of a mandate that can be charged.
async fn active(shop: &Shop) -> (String, Value) {
    let reference = tokenize(shop).await;
    shop.world.advance(10).await;
    shop.world.advance(10).await;
    let data = fetch(shop, &reference).await;
    assert_eq!(data["status"], "ACTIVE");
    (reference, data["token"].clone())
}

fn charge(token: &Value, tx_ref: &str) -> Value {
    json!({
        "token": token, "email": "ada@example.com", "amount": "50", "tx_ref": tx_ref,
        "type": "account",
    })
}

#[tokio::test]
async fn the_transfer_arrives_by_the_clock_and_the_webhook_has_the_token() {
    let shop = Shop::new().await;
    let data = shop.post("/accounts/tokenize", request()).await["data"].clone();
    assert_eq!((&data["status"], &data["token"]), (&json!("PENDING"), &Value::Null));
    assert_eq!((&data["response_code"], &data["currency"]), (&json!("02"), &json!("NGN")));
    assert_eq!(data["start_date"], "2026-11-22T00:00:00.000Z");
    let consent = &data["mandate_consent"];
    assert!(consent["account_number"].is_string() && consent["bank_name"].is_string());
    let reference = data["reference"].as_str().unwrap();
    assert!(reference.starts_with("URF_EMANDATE_"));

    shop.world.advance(10).await;
    let approved = fetch(&shop, reference).await;
    assert_eq!(
        (&approved["status"], &approved["response_code"]),
        (&json!("APPROVED"), &json!("00"))
    );
    let webhooks = shop.notified().await;
    assert_eq!(webhooks[0]["event"], "account.tokenize");
    assert_eq!(webhooks[0]["data"], approved);
    let token = approved["token"].as_str().unwrap();
    assert!(token.starts_with("flw-1bt-"), "{token}");
    assert_eq!(approved["active_on"], "2026-11-21T10:00:20.000Z");
    let early = shop.refused("/tokenized-charges", charge(&approved["token"], "early")).await;
    assert_eq!(early, (400, "Account token is not active".to_owned()));
    shop.world.advance(10).await;
    assert_eq!(fetch(&shop, reference).await["status"], "ACTIVE");
}

#[tokio::test]
async fn a_customer_consents_or_declines_on_the_page() {
    let shop = Shop::new().await;
    let yes = tokenize(&shop).await;
    let page = shop.world.request(Method::GET, "/").send().await.unwrap().text().await.unwrap();
    assert!(page.contains(&yes) && page.contains("mandate"));
    let by_card = json!({ "outcome": "success", "card": SUCCESS });
    assert_eq!(shop.world.complete(&yes, by_card).await.0, 400);
    shop.complete(&yes, json!({ "outcome": "success" })).await;
    assert_eq!(fetch(&shop, &yes).await["status"], "APPROVED");
    assert_eq!(shop.world.complete(&yes, json!({ "outcome": "success" })).await.0, 409);

    let no = tokenize(&shop).await;
    shop.complete(&no, json!({ "outcome": "failed" })).await;
    shop.world.advance(3_600).await;
    let refused = fetch(&shop, &no).await;
    assert_eq!((&refused["status"], &refused["token"]), (&json!("PENDING"), &Value::Null));
    assert_eq!(shop.notified().await.len(), 1);
}

#[tokio::test]
async fn a_debit_has_the_account_and_adds_the_fee() {
    let shop = Shop::new().await;
    let (_, token) = active(&shop).await;
    let response = shop.post("/tokenized-charges", charge(&token, "debit-1")).await;
    assert_eq!(response["message"], "Charge successful");
    let data = &response["data"];
    assert_eq!((&data["status"], &data["payment_type"]), (&json!("successful"), &json!("account")));
    assert_eq!(data["auth_model"], "EMANDATE");
    assert_eq!((&data["amount"], &data["charged_amount"]), (&json!(50), &json!(50.7)));
    assert_eq!(data["account"]["account_number"], "0123456789");
    let webhook = shop.notified().await.pop().unwrap();
    assert_eq!(webhook["event.type"], "ACCOUNT_TRANSACTION");
    assert_eq!(webhook["data"]["account"]["account_name"], "TEST CUSTOMER");
}

#[tokio::test]
async fn a_debit_can_fail_or_stay_pending() {
    let shop = Shop::new().await;
    let (_, token) = active(&shop).await;
    let faults = shop.world.simulators.faults();
    faults.push(Fault::new("charge", FaultKind::Decline));
    let failed = shop.post("/tokenized-charges", charge(&token, "debit-1")).await;
    assert_eq!(failed["data"]["status"], "failed");
    faults.push(Fault::new("charge", FaultKind::Pending));
    shop.post("/tokenized-charges", charge(&token, "debit-2")).await;
    assert_eq!(shop.verify("debit-2").await["status"], "pending");
    assert!(shop.world.simulators.flutterwave().resolve("debit-2", Outcome::Success));
    assert_eq!(shop.verify("debit-2").await["status"], "successful");
    let mut much = charge(&token, "debit-3");
    much["amount"] = json!(2_000.01);
    assert_eq!(shop.refused("/tokenized-charges", much).await.0, 400);
}

#[tokio::test]
async fn a_token_is_suspended_reactivated_and_permanently_deleted() {
    let shop = Shop::new().await;
    let (reference, token) = active(&shop).await;
    let path = format!("/accounts/token/{reference}");
    let put = async |status: &str| {
        let (code, body) = shop.call(Method::PUT, &path, json!({ "status": status })).await;
        (code, body["data"]["status"].clone())
    };
    assert_eq!(put("SUSPENDED").await, (200, json!("SUSPENDED")));
    assert_eq!(shop.refused("/tokenized-charges", charge(&token, "no")).await.0, 400);
    assert_eq!(put("ACTIVE").await, (200, json!("ACTIVE")));
    shop.post("/tokenized-charges", charge(&token, "yes")).await;
    assert_eq!(put("odd").await.0, 400);
    assert_eq!(put("DELETED").await, (200, json!("DELETED")));
    assert_eq!(put("ACTIVE").await.0, 400);
    assert_eq!(shop.refused("/tokenized-charges", charge(&token, "gone")).await.0, 400);
    let unknown = shop.refused("/accounts/token/none", Value::Null).await;
    assert_eq!(unknown, (400, "No mandate token found for reference.".to_owned()));
}

#[tokio::test]
async fn invalid_mandates_are_refused() {
    let shop = Shop::new().await;
    let cases = [
        ("amount", json!(99)),
        ("amount", json!(null)),
        ("email", json!("nobody")),
        ("address", json!(null)),
        ("account_number", json!("123")),
        ("account_bank", json!("GTB")),
        ("start_date", json!("2026-11-21T23:00:00.000Z")),
        ("start_date", json!("soon")),
        ("end_date", json!("2026-11-22")),
        ("end_date", json!("2027-11-23")),
        ("end_date", json!(null)),
        ("currency", json!("USD")),
    ];
    for (name, value) in cases {
        let mut body = request();
        body[name] = value.clone();
        assert_eq!(shop.refused("/accounts/tokenize", body).await.0, 400, "{name}: {value}");
    }
    let mut short = request();
    short["start_date"] = json!(null);
    short["end_date"] = json!("2027-11-21");
    shop.post("/accounts/tokenize", short).await;
}
