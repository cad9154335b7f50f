use reqwest::Method;
use serde_json::{Value, json};
use tollhouse_sandbox::{Outcome, monnify::UnderpaymentPolicy};

use super::{CONTRACT, KEY, SECRET, SUCCESS, Shop, last_step, log_in, order};

const INIT: &str = "/v1/merchant/transactions/init-transaction";

#[tokio::test]
async fn an_access_token_expires_by_the_clock() {
    let shop = Shop::new().await;
    shop.begin("pay-1").await;
    shop.world.advance(3_599).await;
    shop.status("pay-1").await;
    shop.world.advance(1).await;
    let path = "/v2/merchant/transactions/query?paymentReference=pay-1";
    assert_eq!(shop.refused(path, Value::Null).await, (401, "99".to_owned()));
    let (_, body) = log_in(&shop.world, KEY, SECRET).await;
    assert_eq!(body["responseBody"]["expiresIn"], 3_600);
    let token = body["responseBody"]["accessToken"].as_str().unwrap().to_owned();
    Shop { token, ..shop }.status("pay-1").await;
}

#[tokio::test]
async fn credentials_are_checked() {
    let shop = Shop::new().await;
    for (key, secret) in [(KEY, "wrong"), ("nobody", SECRET), (KEY, "")] {
        assert_eq!(log_in(&shop.world, key, secret).await.0, 401, "{key} {secret}");
    }
    let request = shop.world.request(Method::POST, "/monnify/api/v1/auth/login");
    assert_eq!(request.send().await.unwrap().status(), 401);
    for token in ["", "unheard-of"] {
        let path = "/monnify/api/v2/merchant/transactions/query?paymentReference=x";
        let request = shop.world.request(Method::GET, path).bearer_auth(token);
        assert_eq!(request.send().await.unwrap().status(), 401);
    }
}

#[tokio::test]
async fn initialization_returns_the_documented_shape() {
    let shop = Shop::new().await;
    let body = shop.begin("pay-1").await;
    assert_eq!((&body["paymentReference"], &body["apiKey"]), (&json!("pay-1"), &json!(KEY)));
    assert_eq!(body["enabledPaymentMethod"], json!(["CARD", "ACCOUNT_TRANSFER"]));
    assert!(body["merchantName"].is_string());
    let reference = body["transactionReference"].as_str().unwrap();
    let parts: Vec<&str> = reference.split('|').collect();
    // In Lagos time.
    assert_eq!((parts[0], parts[2], parts.len()), ("MNFY", "20261121110000", 4));
    let url = body["checkoutUrl"].as_str().unwrap();
    let page = shop.world.client.get(url).send().await.unwrap().text().await.unwrap();
    for text in ["NGN 5,000.00", "ada@example.com", "pay-1", SUCCESS, "4000000000000002", "Monnify"]
    {
        assert!(page.contains(text), "{text}");
    }
    let status = shop.status("pay-1").await;
    assert_eq!((&status["paymentStatus"], &status["paidOn"]), (&json!("PENDING"), &Value::Null));
    assert_eq!(
        (&status["amountPaid"], &status["totalPayable"]),
        (&json!("0.00"), &json!("5000.00"))
    );
}

#[tokio::test]
async fn the_status_has_the_documented_shape_by_both_references() {
    let shop = Shop::new().await;
    let paid = shop.pay("pay-1", SUCCESS).await;
    let expected = json!({
        "paymentReference": "pay-1", "amountPaid": "5000.00", "totalPayable": "5000.00",
        "settlementAmount": "4925.00", "paidOn": "21/11/2026 11:00:00 AM", "paymentStatus": "PAID",
        "paymentDescription": "Loan 7", "currency": "NGN", "paymentMethod": "CARD",
        "product": { "type": "WEB_SDK", "reference": "pay-1" }, "accountDetails": null,
        "accountPayments": [], "customer": { "email": "ada@example.com", "name": "Ada Obi" },
        "metaData": { "order": 7 },
    });
    for (name, value) in expected.as_object().unwrap() {
        assert_eq!(&paid[name], value, "{name}");
    }
    assert_eq!(paid["transactionHash"].as_str().unwrap().len(), 128);
    let reference = paid["transactionReference"].as_str().unwrap();
    let escaped = reference.replace('|', "%7C");
    assert_eq!(shop.get(&format!("/v2/transactions/{escaped}")).await, paid);
    let path = format!("/v2/merchant/transactions/query?transactionReference={escaped}");
    assert_eq!(shop.get(&path).await, paid);
    for path in ["/v2/transactions/pay-1", "/v2/merchant/transactions/query?paymentReference=none"]
    {
        assert_eq!(shop.refused(path, Value::Null).await.0, 404, "{path}");
    }
}

#[tokio::test]
async fn an_unencoded_bar_in_a_path_is_rejected() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let shop = Shop::new().await;
    let reference = shop.begin("pay-1").await["transactionReference"].clone();
    // Written by hand, because client libraries encode it.
    let address = shop.world.simulators.url().replace("http://", "");
    let mut stream = tokio::net::TcpStream::connect(&address).await.unwrap();
    let request = format!(
        "GET /monnify/api/v2/transactions/{} HTTP/1.1\r\nhost: {address}\r\n\
         authorization: Bearer {}\r\nconnection: close\r\n\r\n",
        reference.as_str().unwrap(),
        shop.token,
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).await.unwrap();
    assert!(response.starts_with("HTTP/1.1 400"), "{response}");
}

#[tokio::test]
async fn the_redirect_has_only_the_reference() {
    let shop = Shop::new().await;
    let page = shop.page("trip").await;
    for (outcome, status) in [("abandoned", "PENDING"), ("failed", "FAILED"), ("success", "PAID")] {
        let back = shop.complete(&page, json!({ "outcome": outcome })).await;
        assert_eq!(back, "https://shop.test/back?x=1&paymentReference=trip");
        assert_eq!(shop.status("trip").await["paymentStatus"], status);
    }
    assert_eq!(shop.world.complete(&page, json!({ "outcome": "success" })).await.0, 409);
}

#[tokio::test]
async fn amounts_may_be_strings() {
    let shop = Shop::new().await;
    let mut order = order("exact");
    order["amount"] = json!("2500.55");
    let page = last_step(&shop.post(INIT, order).await["checkoutUrl"]);
    shop.complete(&page, json!({ "outcome": "success" })).await;
    let paid = shop.status("exact").await;
    assert_eq!(
        (&paid["amountPaid"], &paid["settlementAmount"]),
        (&json!("2500.55"), &json!("2463.04"))
    );
}

#[tokio::test]
async fn invalid_requests_are_refused() {
    let shop = Shop::new().await;
    shop.begin("taken").await;
    let with = |name: &str, value: Value| {
        let mut order = order("new");
        order[name] = value;
        order
    };
    let cases = [
        (with("amount", json!(null)), "amount is required"),
        (with("amount", json!("1.005")), "amount is not a valid amount"),
        (with("customerEmail", json!("nobody")), "customerEmail is not a valid email"),
        (with("paymentReference", json!("taken")), "Duplicate payment reference"),
        (with("currencyCode", json!("USD")), "Currency is not supported"),
        (with("contractCode", json!("1234567890")), "Contract code is not valid for this merchant"),
        (with("contractCode", json!(null)), "contractCode is required"),
        (with("paymentMethods", json!(["CASH"])), "Unknown payment method"),
    ];
    for (body, message) in cases {
        let (status, response) = shop.call(Method::POST, INIT, body).await;
        assert_eq!((status, &response["responseMessage"]), (400, &json!(message)));
        assert_eq!(response["responseCode"], "99");
    }
    assert_eq!(shop.refused("/v1/nothing", Value::Null).await.0, 404);
}

#[tokio::test]
async fn transfers_may_be_too_small_or_too_large() {
    let shop = Shop::new().await;
    let monnify = shop.world.simulators.monnify();
    for reference in ["small", "part", "large"] {
        let mut order = order(reference);
        order["paymentMethods"] = json!(["ACCOUNT_TRANSFER"]);
        shop.post(INIT, order).await;
    }
    assert!(monnify.transfer("small", 400_000, UnderpaymentPolicy::Rejected));
    assert_eq!(shop.status("small").await["paymentStatus"], "PENDING");
    assert!(monnify.transfer("part", 400_000, UnderpaymentPolicy::Kept));
    let part = shop.status("part").await;
    assert_eq!(
        (&part["paymentStatus"], &part["amountPaid"]),
        (&json!("PARTIALLY_PAID"), &json!("4000.00"))
    );
    assert!(monnify.transfer("part", 100_000, UnderpaymentPolicy::Kept));
    assert_eq!(shop.status("part").await["paymentStatus"], "PAID");
    let body = json!({ "reference": "large", "amount_minor": 600_050 });
    let request = shop.world.request(Method::POST, "/monnify/transfer").json(&body);
    assert_eq!(request.send().await.unwrap().status(), 204);
    let large = shop.status("large").await;
    assert_eq!(
        (&large["paymentStatus"], &large["amountPaid"]),
        (&json!("OVERPAID"), &json!("6000.50"))
    );
    assert_eq!(large["paymentMethod"], "ACCOUNT_TRANSFER");
    assert_eq!(large["accountDetails"]["amountPaid"], "6000.50");
    assert!(!monnify.transfer("large", 1, UnderpaymentPolicy::Kept));
    assert!(!monnify.transfer("none", 1, UnderpaymentPolicy::Kept));
}

#[tokio::test]
async fn a_checkout_without_an_attempt_can_expire() {
    let shop = Shop::new().await;
    let page = shop.page("late").await;
    let monnify = shop.world.simulators.monnify();
    assert!(!monnify.resolve("late", Outcome::Success));
    assert!(monnify.resolve("late", Outcome::Abandoned));
    assert_eq!(shop.status("late").await["paymentStatus"], "EXPIRED");
    assert_eq!(shop.world.complete(&page, json!({ "outcome": "success" })).await.0, 409);
}

#[tokio::test]
async fn tampering_changes_the_status() {
    let shop = Shop::new().await;
    shop.pay("lie", SUCCESS).await;
    let monnify = shop.world.simulators.monnify();
    assert!(monnify.tamper("lie", 105, "USD"));
    assert!(!monnify.tamper("none", 105, "USD"));
    let status = shop.status("lie").await;
    assert_eq!((&status["amountPaid"], &status["currency"]), (&json!("1.05"), &json!("USD")));
    assert!(monnify.tamper_charged_amount("lie", 7));
    let status = shop.status("lie").await;
    assert_eq!((&status["amountPaid"], &status["totalPayable"]), (&json!("0.07"), &json!("1.05")));
    let body = json!({ "reference": "lie", "reversed": true });
    let request = shop.world.request(Method::PUT, "/monnify/tamper").json(&body);
    assert_eq!(request.send().await.unwrap().status(), 204);
    assert_eq!(shop.status("lie").await["paymentStatus"], "REVERSED");
}

#[tokio::test]
async fn accounts_are_isolated_and_requests_are_recorded() {
    let shop = Shop::new().await;
    shop.begin("mine").await;
    let (_, body) = log_in(&shop.world, "MK_TEST_OTHER", "other").await;
    let token = body["responseBody"]["accessToken"].as_str().unwrap().to_owned();
    let other = Shop { token, ..shop };
    let path = "/v2/merchant/transactions/query?paymentReference=mine";
    assert_eq!(other.refused(path, Value::Null).await.0, 404);
    // Each account has its own contract.
    let mut order = order("theirs");
    assert_eq!(order["contractCode"].take(), CONTRACT);
    order["contractCode"] = json!("1234567890");
    other.post(INIT, order).await;
    let login = ("POST".to_owned(), "/api/v1/auth/login".to_owned());
    let seen = other.world.simulators.monnify().requests();
    assert_eq!(seen.iter().filter(|request| **request == login).count(), 2);
    assert_eq!(seen[1], ("POST".to_owned(), format!("/api{INIT}")));
    assert_eq!(seen.len(), 5);
}
