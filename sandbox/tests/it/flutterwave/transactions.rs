use reqwest::Method;
use serde_json::{Value, json};

use super::{KEY, SUCCESS, Shop, order};

#[tokio::test]
async fn a_link_opens_the_page_and_no_transaction_exists_before_an_attempt() {
    let shop = Shop::new().await;
    let response = shop.post("/payments", order("pay-1")).await;
    assert_eq!(response["message"], "Hosted Link");
    let link = response["data"]["link"].as_str().unwrap();
    assert!(link.starts_with(&format!("{}/checkout/", shop.world.simulators.url())), "{link}");
    let page = shop.world.client.get(link).send().await.unwrap().text().await.unwrap();
    for text in ["NGN 5,000.00", "ada@example.com", "pay-1", SUCCESS, "Flutterwave"] {
        assert!(page.contains(text), "{text}");
    }
    let path = "/transactions/verify_by_reference?tx_ref=pay-1";
    let missing = (404, "No transaction was found for this id".to_owned());
    assert_eq!(shop.refused(path, Value::Null).await, missing);
    assert_eq!(shop.refused("/transactions/1/verify", Value::Null).await.0, 400);
}

#[tokio::test]
async fn verification_has_the_documented_shape() {
    let shop = Shop::new().await;
    let paid = shop.pay("pay-1", SUCCESS).await;
    let expected = json!({
        "tx_ref": "pay-1", "amount": 5_000, "currency": "NGN", "charged_amount": 5_000,
        "app_fee": 70, "merchant_fee": 0, "amount_settled": 4_930, "status": "successful",
        "payment_type": "card", "auth_model": "PIN", "narration": "CARD Transaction ",
        "processor_response": "Approved by Financial Institution",
        "created_at": "2026-11-21T10:00:00.000Z",
    });
    for (name, value) in expected.as_object().unwrap() {
        assert_eq!(&paid[name], value, "{name}");
    }
    assert!(paid["id"].as_u64().unwrap() > 1 << 32);
    assert!(paid["flw_ref"].as_str().unwrap().starts_with("FLW-MOCK-"));
    assert_eq!(paid["meta"]["order"], 7);
    assert!(paid["meta"]["__CheckoutInitAddress"].is_string());
    let customer = &paid["customer"];
    assert_eq!(customer["email"], "ada@example.com");
    assert_eq!((&customer["name"], &customer["phone_number"]), (&json!("Ada Obi"), &json!("0800")));
    let by_id = shop.get(&format!("/transactions/{}/verify", paid["id"])).await;
    assert_eq!(by_id["message"], "Transaction fetched successfully");
    assert_eq!(by_id["data"], paid);
}

#[tokio::test]
async fn amounts_are_exact_decimals_as_numbers_or_strings() {
    let shop = Shop::new().await;
    for (at, amount) in [json!(2500.55), json!("2500.55")].into_iter().enumerate() {
        let tx_ref = format!("exact-{at}");
        let mut order = order(&tx_ref);
        order["amount"] = amount;
        let link = shop.post("/payments", order).await["data"]["link"].clone();
        let page = link.as_str().unwrap().rsplit('/').next().unwrap().to_owned();
        shop.complete(&page, json!({ "outcome": "success" })).await;
        let paid = shop.verify(&tx_ref).await;
        assert_eq!(paid["amount"].to_string(), "2500.55");
        assert_eq!(paid["app_fee"].to_string(), "35.01");
        assert_eq!(paid["amount_settled"].to_string(), "2465.54");
    }
}

#[tokio::test]
async fn the_redirect_has_the_outcome() {
    let shop = Shop::new().await;
    let page = shop.link("trip").await;
    let left = shop.complete(&page, json!({ "outcome": "abandoned" })).await;
    assert_eq!(left, "https://shop.test/back?x=1&status=cancelled&tx_ref=trip");
    let path = "/transactions/verify_by_reference?tx_ref=trip";
    assert_eq!(shop.refused(path, Value::Null).await.0, 404);

    let failed = shop.complete(&page, json!({ "outcome": "failed" })).await;
    let id = shop.verify("trip").await["id"].clone();
    let back = |status| {
        format!("https://shop.test/back?x=1&status={status}&tx_ref=trip&transaction_id={id}")
    };
    assert_eq!(failed, back("failed"));
    let paid = shop.complete(&page, json!({ "outcome": "success" })).await;
    assert_eq!(paid, back("successful"));
    assert_eq!(shop.verify("trip").await["status"], "successful");
    assert_eq!(shop.world.complete(&page, json!({ "outcome": "success" })).await.0, 409);
}

#[tokio::test]
async fn other_payment_options_have_their_payment_type() {
    let shop = Shop::new().await;
    let ways = [
        ("banktransfer", "bank_transfer"),
        ("account", "account"),
        ("ussd", "ussd"),
        ("nqr", "nqr"),
        ("mobilemoneyghana, mpesa", "mobilemoneygh"),
        ("mpesa", "mpesa"),
    ];
    for (option, payment_type) in ways {
        let tx_ref = payment_type;
        let mut order = order(tx_ref);
        order["payment_options"] = json!(option);
        let link = shop.post("/payments", order).await["data"]["link"].clone();
        let page = link.as_str().unwrap().rsplit('/').next().unwrap().to_owned();
        let by_card = json!({ "outcome": "success", "card": SUCCESS });
        assert_eq!(shop.world.complete(&page, by_card).await.0, 400);
        let back = shop.complete(&page, json!({ "outcome": "success" })).await;
        assert!(back.as_str().unwrap().contains("status=completed"), "{back}");
        let paid = shop.verify(tx_ref).await;
        assert_eq!((&paid["payment_type"], &paid["card"]), (&json!(payment_type), &Value::Null));
    }
}

#[tokio::test]
async fn a_link_expires_by_session_duration_or_attempts() {
    let shop = Shop::new().await;
    let mut short = order("short");
    short["session_duration"] = json!(10);
    short["max_retry_attempt"] = json!(2);
    let link = shop.post("/payments", short).await["data"]["link"].clone();
    let page = link.as_str().unwrap().rsplit('/').next().unwrap().to_owned();
    shop.complete(&page, json!({ "outcome": "failed" })).await;
    shop.complete(&page, json!({ "outcome": "failed" })).await;
    assert_eq!(shop.world.complete(&page, json!({ "outcome": "success" })).await.0, 409);
    let mut slow = order("slow");
    slow["session_duration"] = json!(10);
    let link = shop.post("/payments", slow).await["data"]["link"].clone();
    let page = link.as_str().unwrap().rsplit('/').next().unwrap().to_owned();
    shop.world.advance(600).await;
    assert_eq!(shop.world.complete(&page, json!({ "outcome": "success" })).await.0, 409);
}

#[tokio::test]
async fn invalid_requests_are_refused() {
    let shop = Shop::new().await;
    shop.link("taken").await;
    let with = |name: &str, value: Value| {
        let mut order = order("new");
        order[name] = value;
        order
    };
    let cases = [
        (with("amount", json!(null)), "amount is required"),
        (with("amount", json!(0)), "amount must be a positive number"),
        (with("amount", json!("1.005")), "amount must be a positive number"),
        (with("tx_ref", json!("")), "tx_ref is required"),
        (with("tx_ref", json!("x".repeat(101))), "tx_ref must not be longer than 100 characters"),
        (with("tx_ref", json!("taken")), "Duplicate transaction reference: tx_ref must be unique"),
        (with("customer", json!({})), "customer.email is required"),
        (with("customer", json!({ "email": "nobody" })), "email must be a valid email"),
        (with("redirect_url", json!(null)), "redirect_url is required"),
        (with("currency", json!("ZZZ")), "currency is not supported"),
        (
            with("session_duration", json!(1441)),
            "session_duration must be between 1 and 1440 minutes",
        ),
    ];
    for (body, message) in cases {
        assert_eq!(shop.refused("/payments", body).await, (400, message.to_owned()));
    }
    assert_eq!(shop.refused("/nothing", Value::Null).await.0, 404);
}

#[tokio::test]
async fn keys_are_required_and_isolate_accounts() {
    let shop = Shop::new().await;
    let paid = shop.pay("mine", SUCCESS).await;
    let path = format!("/flutterwave/v3/transactions/{}/verify", paid["id"]);
    let bare = shop.world.request(Method::GET, &path).send().await.unwrap();
    assert_eq!(bare.status(), 401);
    assert_eq!(bare.json::<Value>().await.unwrap()["message"], "Authorization required");
    for key in ["sk_test_x", "FLWSECK_TEST-", "FLWPUBK_TEST-x"] {
        let request = shop.world.request(Method::GET, &path).bearer_auth(key);
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), 401, "{key}");
        assert_eq!(response.json::<Value>().await.unwrap()["message"], "Invalid authorization key");
    }
    let other = shop.world.request(Method::GET, &path).bearer_auth("FLWSECK-other-X");
    assert_eq!(other.send().await.unwrap().status(), 400);
}

#[tokio::test]
async fn transactions_are_listed_also_under_a_doubled_slash() {
    let shop = Shop::new().await;
    shop.link("untried").await;
    shop.pay("one", SUCCESS).await;
    let two = shop.pay("two", SUCCESS).await;
    let all = shop.get("/transactions").await;
    assert_eq!(all["meta"]["page_info"]["total"], 2);
    // Ids are strings in lists.
    assert_eq!(all["data"][0]["id"], two["id"].to_string());
    assert_eq!(all["data"][0]["customer_email"], "ada@example.com");
    let one = shop.get("/transactions?tx_ref=one").await["data"].clone();
    assert_eq!((&one[0]["tx_ref"], one.as_array().unwrap().len()), (&json!("one"), 1));
    let request = shop.world.request(Method::GET, "/flutterwave//v3/transactions?status=failed");
    let response: Value = request.bearer_auth(KEY).send().await.unwrap().json().await.unwrap();
    assert_eq!(response["data"], json!([]));
}

#[tokio::test]
async fn tampering_changes_the_verification() {
    let shop = Shop::new().await;
    shop.pay("lie", SUCCESS).await;
    let flutterwave = shop.world.simulators.flutterwave();
    assert!(flutterwave.tamper("lie", 105, "USD"));
    assert!(!flutterwave.tamper("none", 105, "USD"));
    let verified = shop.verify("lie").await;
    assert_eq!((&verified["amount"], &verified["currency"]), (&json!(1.05), &json!("USD")));
    assert!(flutterwave.tamper_charged_amount("lie", 7));
    let verified = shop.verify("lie").await;
    assert_eq!((&verified["amount"], &verified["charged_amount"]), (&json!(1.05), &json!(0.07)));
    let body = json!({ "reference": "lie", "reversed": true });
    let request = shop.world.request(Method::PUT, "/flutterwave/tamper").json(&body);
    assert_eq!(request.send().await.unwrap().status(), 204);
    assert_eq!(shop.verify("lie").await["status"], "successful");
    let chargebacks = shop.get("/chargebacks").await["data"].clone();
    assert_eq!(
        (&chargebacks[0]["status"], &chargebacks[0]["amount"]),
        (&json!("lost"), &json!(5_000))
    );
}

#[tokio::test]
async fn requests_are_recorded_except_controls() {
    let shop = Shop::new().await;
    shop.link("seen").await;
    let body = json!({ "secret_key": KEY, "hash": "other", "url": "http://127.0.0.1:9/x" });
    let request = shop.world.request(Method::PUT, "/flutterwave/webhook").json(&body);
    assert_eq!(request.send().await.unwrap().status(), 204);
    let seen = shop.world.simulators.flutterwave().requests();
    assert_eq!(seen, [("POST".to_owned(), "/payments".to_owned())]);
    assert!(shop.world.simulators.paystack().requests().is_empty());
}
