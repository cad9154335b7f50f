//! The MoMo simulator.

use reqwest::{Method, RequestBuilder, Response};
use serde_json::{Value, json};
use tollhouse_sandbox::{
    Fault, FaultKind,
    momo::{Answer, Credentials, Status, Totals},
};

use crate::world::World;

const REQUEST: &str = "/collection/v1_0/requesttopay";
const REFUND: &str = "/disbursement/v1_0/refund";
const PAYMENT_ID: &str = "c72025f5-5cd1-4630-99e4-8ba4722fad56";
const OTHER_ID: &str = "0b9d7c34-1f52-4e8a-b6c1-2d3e4f5a6b7c";
const PHONE: &str = "256772123456";

/// An account with the access tokens of both products.
struct Shop {
    world: World,
    credentials: Credentials,
    collection: String,
    disbursement: String,
}

impl Shop {
    async fn new() -> Shop {
        Shop::with(World::new().await, Credentials::default()).await
    }

    async fn with(world: World, credentials: Credentials) -> Shop {
        let collection = token(&world, &credentials, "collection").await;
        let disbursement = token(&world, &credentials, "disbursement").await;
        Shop { world, credentials, collection, disbursement }
    }

    /// A request with the headers of its product.
    fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let own = &self.credentials;
        let (token, key) = match path.starts_with("/disbursement") {
            true => (&self.disbursement, &own.disbursement_subscription_key),
            false => (&self.collection, &own.subscription_key),
        };
        let request = self.world.request(method, &format!("/momo{path}")).bearer_auth(token);
        request
            .header("Ocp-Apim-Subscription-Key", key)
            .header("X-Target-Environment", &own.target_environment)
    }

    /// Creates a request to pay or a refund.
    async fn create(&self, path: &str, id: &str, body: Value) -> Response {
        let request = self.request(Method::POST, path).header("X-Reference-Id", id);
        let request = request.header("X-Callback-Url", &self.world.receiver.url);
        request.json(&body).send().await.unwrap()
    }

    /// Requests UGX 500 of a payer.
    async fn ask(&self, id: &str, phone: &str) {
        let response = self.create(REQUEST, id, order(phone)).await;
        assert_eq!(response.status(), 202);
        assert_eq!(response.text().await.unwrap(), "");
    }

    /// Requests UGX 500, which the payer approves.
    async fn paid(&self) {
        self.ask(PAYMENT_ID, PHONE).await;
        assert!(self.world.simulators.momo().answer(PAYMENT_ID, Answer::Approve).is_some());
    }

    async fn get(&self, path: &str) -> (u16, Value) {
        let response = self.request(Method::GET, path).send().await.unwrap();
        (response.status().as_u16(), response.json().await.unwrap())
    }

    async fn fetch(&self, path: &str, id: &str) -> Value {
        let (status, body) = self.get(&format!("{path}/{id}")).await;
        assert_eq!(status, 200, "{body}");
        body
    }

    /// Returns the callbacks received so far, once idle.
    async fn notified(&self) -> Vec<Value> {
        self.world.simulators.run_until_idle().await;
        self.world.receiver.bodies()
    }
}

async fn token(world: &World, own: &Credentials, product: &str) -> String {
    let key = match product {
        "collection" => &own.subscription_key,
        _ => &own.disbursement_subscription_key,
    };
    let response = log_in(world, product, &own.api_user, &own.api_key, key).await;
    assert_eq!(response.status(), 200);
    let body: Value = response.json().await.unwrap();
    assert_eq!((&body["token_type"], &body["expires_in"]), (&json!("access_token"), &json!(3600)));
    body["access_token"].as_str().unwrap().to_owned()
}

async fn log_in(
    world: &World,
    product: &str,
    user: &str,
    key: &str,
    subscription: &str,
) -> Response {
    let request = world.request(Method::POST, &format!("/momo/{product}/token/"));
    let request = request.header("Ocp-Apim-Subscription-Key", subscription);
    request.basic_auth(user, Some(key)).send().await.unwrap()
}

fn order(phone: &str) -> Value {
    json!({
        "amount": "500", "currency": "UGX", "externalId": "loan-7",
        "payer": { "partyIdType": "MSISDN", "partyId": phone },
        "payerMessage": "Installment 1", "payeeNote": "Installment 1",
    })
}

fn refund_order(amount: &str) -> Value {
    json!({
        "amount": amount, "currency": "UGX", "externalId": "refund-7",
        "payerMessage": "Refund", "payeeNote": "Refund", "referenceIdToRefund": PAYMENT_ID,
    })
}

/// Returns the status and the code of an error.
async fn rejection(response: Response) -> (u16, String) {
    let status = response.status().as_u16();
    let text = response.text().await.unwrap();
    let body: Value = serde_json::from_str(&text).unwrap_or_default();
    (status, body["code"].as_str().unwrap_or_default().to_owned())
}

fn error(status: u16, code: &str) -> (u16, String) {
    (status, code.to_owned())
}

#[tokio::test]
async fn a_payment_has_the_documented_shapes() {
    let shop = Shop::new().await;
    shop.ask(PAYMENT_ID, PHONE).await;
    let mut expected = order(PHONE);
    expected["status"] = json!("PENDING");
    assert_eq!(shop.fetch(REQUEST, PAYMENT_ID).await, expected);

    let paid = shop.world.simulators.momo().answer(PHONE, Answer::Approve).unwrap();
    assert_eq!((paid.amount, paid.status), (50_000, Status::Successful));
    expected["status"] = json!("SUCCESSFUL");
    expected["financialTransactionId"] = json!(paid.transaction_id.unwrap().to_string());
    assert_eq!(shop.fetch(REQUEST, PAYMENT_ID).await, expected);
    assert_eq!(shop.notified().await, [expected]);
    let (headers, _) = shop.world.receiver.received().remove(0);
    assert_eq!(headers["content-type"], "application/json");
    assert_eq!(shop.world.simulators.momo().totals(), Totals { taken: 50_000, returned: 0 });
    let (_, balance) = shop.get("/collection/v1_0/account/balance").await;
    assert_eq!(balance, json!({ "availableBalance": "500", "currency": "UGX" }));
}

#[tokio::test]
async fn a_failure_has_a_reason_and_is_final() {
    for (answer, reason) in [
        (Answer::Reject, "APPROVAL_REJECTED"),
        (Answer::InsufficientFunds, "NOT_ENOUGH_FUNDS"),
        (Answer::LimitReached, "PAYER_LIMIT_REACHED"),
        (Answer::UnknownPayer, "PAYER_NOT_FOUND"),
        (Answer::InternalError, "INTERNAL_PROCESSING_ERROR"),
    ] {
        let shop = Shop::new().await;
        shop.ask(PAYMENT_ID, PHONE).await;
        let momo = shop.world.simulators.momo();
        assert!(momo.answer(PAYMENT_ID, answer).is_some());
        assert!(momo.answer(PAYMENT_ID, Answer::Approve).is_none());
        let seen = shop.fetch(REQUEST, PAYMENT_ID).await;
        assert_eq!((&seen["status"], &seen["reason"]), (&json!("FAILED"), &json!(reason)));
        assert_eq!(shop.notified().await, [seen]);
        assert_eq!(momo.totals(), Totals::default());
    }
}

#[tokio::test]
async fn a_request_without_an_answer_expires_after_five_minutes() {
    let shop = Shop::new().await;
    shop.ask(PAYMENT_ID, PHONE).await;
    shop.world.advance(299).await;
    assert_eq!(shop.fetch(REQUEST, PAYMENT_ID).await["status"], "PENDING");
    shop.world.advance(1).await;
    assert_eq!(shop.fetch(REQUEST, PAYMENT_ID).await["reason"], "EXPIRED");
    assert_eq!(shop.notified().await.len(), 1);
}

#[tokio::test]
async fn magic_payers_answer_by_themselves() {
    for (phone, status, reason) in [
        ("46733123450", "FAILED", json!("INTERNAL_PROCESSING_ERROR")),
        ("46733123451", "FAILED", json!("APPROVAL_REJECTED")),
        ("46733123452", "FAILED", json!("EXPIRED")),
        ("256770000000", "SUCCESSFUL", Value::Null),
        ("256770000001", "FAILED", json!("NOT_ENOUGH_FUNDS")),
        ("256770000002", "FAILED", json!("PAYER_LIMIT_REACHED")),
        ("256770000003", "FAILED", json!("PAYER_NOT_FOUND")),
    ] {
        let shop = Shop::new().await;
        shop.ask(PAYMENT_ID, phone).await;
        shop.world.advance(2).await;
        assert!(shop.notified().await.is_empty(), "{phone}");
        shop.world.advance(1).await;
        let seen = shop.fetch(REQUEST, PAYMENT_ID).await;
        assert_eq!((&seen["status"], &seen["reason"]), (&json!(status), &reason), "{phone}");
        shop.world.advance(300).await;
        assert_eq!(shop.notified().await.len(), 1, "{phone}");
    }
    let shop = Shop::new().await;
    for (phone, active) in [(PHONE, true), ("256770000003", false)] {
        let path = format!("/collection/v1_0/accountholder/MSISDN/{phone}/active");
        assert_eq!(shop.get(&path).await, (200, json!({ "result": active })));
    }
}

#[tokio::test]
async fn a_page_answers_a_request() {
    let shop = Shop::new().await;
    shop.ask(PAYMENT_ID, PHONE).await;
    let front: String =
        shop.world.request(Method::GET, "/").send().await.unwrap().text().await.unwrap();
    assert!(front.contains("MTN MoMo") && front.contains(PHONE));
    let (status, body) = shop.world.complete(PAYMENT_ID, json!({ "outcome": "success" })).await;
    assert_eq!((status, &body["outcome"]), (200, &json!("success")));
    assert_eq!(shop.world.complete(PAYMENT_ID, json!({ "outcome": "failed" })).await.0, 409);
    assert_eq!(shop.fetch(REQUEST, PAYMENT_ID).await["status"], "SUCCESSFUL");
    for (id, outcome, reason) in [
        (OTHER_ID, "failed", "NOT_ENOUGH_FUNDS"),
        ("4e8a1f52-0b9d-4c34-8a6b-6b7c2d3e4f5a", "abandoned", "APPROVAL_REJECTED"),
    ] {
        shop.ask(id, PHONE).await;
        assert_eq!(shop.world.complete(id, json!({ "outcome": outcome })).await.0, 200);
        assert_eq!(shop.fetch(REQUEST, id).await["reason"], reason);
    }
}

#[tokio::test]
async fn every_field_is_checked() {
    let shop = Shop::new().await;
    let payer = |kind: &str, id: &str| json!({ "partyIdType": kind, "partyId": id });
    for (field, value, expected) in [
        ("amount", json!("0"), error(400, "")),
        ("amount", json!("-1"), error(400, "")),
        ("amount", json!("10.5"), error(400, "")),
        ("amount", Value::Null, error(400, "")),
        ("currency", json!("GHS"), error(500, "INVALID_CURRENCY")),
        ("externalId", Value::Null, error(400, "")),
        ("payer", Value::Null, error(400, "")),
        ("payer", payer("EMAIL", "ada@example.com"), error(400, "")),
        ("payer", payer("MSISDN", "+256772123456"), error(400, "")),
        ("payer", payer("MSISDN", "0772"), error(400, "")),
        ("payerMessage", json!("Ada's loan"), error(400, "")),
        ("payeeNote", json!("x".repeat(161)), error(400, "")),
    ] {
        let mut body = order(PHONE);
        body[field] = value.clone();
        let response = shop.create(REQUEST, PAYMENT_ID, body).await;
        assert_eq!(rejection(response).await, expected, "{field} {value}");
    }
    for id in ["loan-7", "c72025f5-5cd1-1630-99e4-8ba4722fad56", "c72025f55cd1463099e48ba4722fad56"]
    {
        let response = shop.create(REQUEST, id, order(PHONE)).await;
        assert_eq!(rejection(response).await, error(400, ""), "{id}");
    }
    let response = shop.request(Method::POST, REQUEST).body("{").send().await.unwrap();
    assert_eq!(rejection(response).await, error(400, ""));
    assert!(shop.world.simulators.momo().payments().is_empty());
}

#[tokio::test]
async fn references_are_used_once_and_unknown_ones_are_not_found() {
    let shop = Shop::new().await;
    shop.paid().await;
    let response = shop.create(REQUEST, PAYMENT_ID, order(PHONE)).await;
    assert_eq!(rejection(response).await, error(409, "RESOURCE_ALREADY_EXIST"));
    for path in [REQUEST, REFUND] {
        let (status, body) = shop.get(&format!("{path}/{OTHER_ID}")).await;
        assert_eq!((status, &body["code"]), (404, &json!("RESOURCE_NOT_FOUND")));
    }
    let (status, body) = shop.get("/collection/none").await;
    assert_eq!((status, &body["message"]), (404, &json!("Resource not found")));
}

#[tokio::test]
async fn tokens_belong_to_a_product_and_expire_by_the_clock() {
    let shop = Shop::new().await;
    let swapped = Shop {
        collection: shop.disbursement.clone(),
        disbursement: shop.collection.clone(),
        ..shop
    };
    for path in [REQUEST, REFUND] {
        assert_eq!(swapped.get(&format!("{path}/{OTHER_ID}")).await.0, 401);
    }
    let (collection, disbursement) = (swapped.disbursement.clone(), swapped.collection.clone());
    let shop = Shop { collection, disbursement, ..swapped };
    shop.world.advance(3_599).await;
    assert_eq!(shop.get(&format!("{REQUEST}/{OTHER_ID}")).await.0, 404);
    shop.world.advance(1).await;
    assert_eq!(shop.get(&format!("{REQUEST}/{OTHER_ID}")).await.0, 401);
}

#[tokio::test]
async fn keys_environments_and_callback_hosts_are_checked() {
    let world = World::new().await;
    let own = Credentials::default();
    let (user, key) = (own.api_user.as_str(), own.api_key.as_str());
    let subscription = own.subscription_key.as_str();
    for (user, key, subscription) in [
        (user, "wrong", subscription),
        (OTHER_ID, key, subscription),
        (user, key, "wrong"),
        (user, key, own.disbursement_subscription_key.as_str()),
    ] {
        let response = log_in(&world, "collection", user, key, subscription).await;
        assert_eq!(response.status(), 401, "{user} {key} {subscription}");
    }
    let mut shop = Shop::with(world, own.clone()).await;
    shop.credentials.subscription_key = "wrong".to_owned();
    assert_eq!(shop.get(&format!("{REQUEST}/{OTHER_ID}")).await.0, 401);
    shop.credentials = Credentials { target_environment: "sandbox".to_owned(), ..own.clone() };
    let (status, body) = shop.get(&format!("{REQUEST}/{OTHER_ID}")).await;
    assert_eq!((status, &body["code"]), (500, &json!("NOT_ALLOWED_TARGET_ENVIRONMENT")));
    shop.credentials = own.clone();
    let elsewhere = Credentials { callback_host: "lender.example".to_owned(), ..own };
    shop.world.simulators.momo().open_account(elsewhere);
    let response = shop.create(REQUEST, PAYMENT_ID, order(PHONE)).await;
    assert_eq!(rejection(response).await, error(500, "INVALID_CALLBACK_URL_HOST"));
}

#[tokio::test]
async fn a_refund_is_pending_and_then_successful() {
    let shop = Shop::new().await;
    shop.paid().await;
    let response = shop.create(REFUND, OTHER_ID, refund_order("200")).await;
    assert_eq!((response.status().as_u16(), response.text().await.unwrap().as_str()), (202, ""));
    let mut expected = json!({
        "externalId": "refund-7", "amount": "200", "currency": "UGX",
        "payee": { "partyIdType": "MSISDN", "partyId": PHONE }, "status": "PENDING",
    });
    assert_eq!(shop.fetch(REFUND, OTHER_ID).await, expected);
    let response = shop.create(REFUND, OTHER_ID, refund_order("200")).await;
    assert_eq!(rejection(response).await, error(409, "RESOURCE_ALREADY_EXIST"));

    shop.world.advance(10).await;
    let seen = shop.fetch(REFUND, OTHER_ID).await;
    expected["status"] = json!("SUCCESSFUL");
    expected["financialTransactionId"] = seen["financialTransactionId"].clone();
    assert_eq!(seen, expected);
    assert_eq!(shop.notified().await.last(), Some(&expected));
    let totals = Totals { taken: 50_000, returned: 20_000 };
    assert_eq!(shop.world.simulators.momo().totals(), totals);
    let (_, balance) = shop.get("/disbursement/v1_0/account/balance").await;
    assert_eq!(balance["availableBalance"], "300");
    // The payment stays successful.
    assert_eq!(shop.fetch(REQUEST, PAYMENT_ID).await["status"], "SUCCESSFUL");
}

#[tokio::test]
async fn refunds_never_exceed_the_payment_or_the_balance() {
    let shop = Shop::new().await;
    let refund = async |id: &str, amount: &str| {
        let response = shop.create(REFUND, id, refund_order(amount)).await;
        rejection(response).await
    };
    assert_eq!(refund(OTHER_ID, "500").await, error(404, "RESOURCE_NOT_FOUND"));
    shop.ask(PAYMENT_ID, PHONE).await;
    assert_eq!(refund(OTHER_ID, "500").await, error(500, "NOT_ALLOWED"));
    let momo = shop.world.simulators.momo();
    momo.answer(PAYMENT_ID, Answer::Approve).unwrap();
    assert_eq!(refund(OTHER_ID, "501").await, error(500, "NOT_ALLOWED"));

    assert!(momo.set_balance(&shop.credentials.api_user, 49_900));
    assert_eq!(refund(OTHER_ID, "500").await, error(202, ""));
    let second = "4e8a1f52-0b9d-4c34-8a6b-6b7c2d3e4f5a";
    assert_eq!(refund(second, "1").await, error(500, "NOT_ALLOWED"));
    shop.world.advance(10).await;
    let seen = shop.fetch(REFUND, OTHER_ID).await;
    assert_eq!(
        (&seen["status"], &seen["reason"]["code"]),
        (&json!("FAILED"), &json!("NOT_ENOUGH_FUNDS"))
    );
    // A failed refund releases its amount.
    assert_eq!(refund(second, "400").await, error(202, ""));
    shop.world.advance(10).await;
    assert_eq!(momo.totals(), Totals { taken: 50_000, returned: 40_000 });
}

#[tokio::test]
async fn accounts_are_opened_over_http_and_isolated() {
    let shop = Shop::new().await;
    shop.paid().await;
    let set = async |body: Value| {
        let request = shop.world.request(Method::PUT, "/momo/account").json(&body);
        request.send().await.unwrap().status().as_u16()
    };
    assert_eq!(set(json!({ "currency": 7 })).await, 400);
    assert_eq!(set(json!({ "password": "x" })).await, 400);
    assert_eq!(set(json!({ "api_user": OTHER_ID, "currency": "GHS" })).await, 204);
    let credentials = Credentials {
        api_user: OTHER_ID.to_owned(),
        currency: "GHS".to_owned(),
        ..Credentials::default()
    };
    let other = Shop::with(shop.world, credentials).await;
    assert_eq!(other.get(&format!("{REQUEST}/{PAYMENT_ID}")).await.0, 404);
    let mut body = order(PHONE);
    (body["currency"], body["amount"]) = (json!("GHS"), json!("12.50"));
    assert_eq!(other.create(REQUEST, PAYMENT_ID, body).await.status(), 202);
    assert_eq!(other.fetch(REQUEST, PAYMENT_ID).await["amount"], "12.50");
}

#[tokio::test]
async fn users_are_provisioned_with_a_key() {
    let world = World::new().await;
    let call = async |method: Method, path: &str, key: &str| {
        let request = world.request(method, &format!("/momo/v1_0/apiuser{path}"));
        let request = request.header("Ocp-Apim-Subscription-Key", key);
        let request = request.header("X-Reference-Id", OTHER_ID);
        let response = request.json(&json!({ "providerCallbackHost": "127.0.0.1" })).send().await;
        let response = response.unwrap();
        let status = response.status().as_u16();
        let text = response.text().await.unwrap();
        (status, serde_json::from_str::<Value>(&text).unwrap_or_default())
    };
    assert_eq!(call(Method::POST, "", "k").await, (201, Value::Null));
    assert_eq!(call(Method::POST, "", "k").await.0, 409);
    let user = json!({ "providerCallbackHost": "127.0.0.1", "targetEnvironment": "sandbox" });
    assert_eq!(call(Method::GET, &format!("/{OTHER_ID}"), "k").await, (200, user));
    let path = format!("/{OTHER_ID}/apikey");
    assert_eq!(call(Method::POST, &path, "wrong").await.0, 404);
    let (status, body) = call(Method::POST, &path, "k").await;
    assert_eq!(status, 201);
    let credentials = Credentials {
        api_user: OTHER_ID.to_owned(),
        api_key: body["apiKey"].as_str().unwrap().to_owned(),
        subscription_key: "k".to_owned(),
        disbursement_subscription_key: "k".to_owned(),
        target_environment: "sandbox".to_owned(),
        currency: "EUR".to_owned(),
        callback_host: "127.0.0.1".to_owned(),
    };
    let shop = Shop::with(world, credentials).await;
    let mut body = order(PHONE);
    body["currency"] = json!("EUR");
    assert_eq!(shop.create(REQUEST, PAYMENT_ID, body).await.status(), 202);
}

#[tokio::test]
async fn faults_and_tampering_apply() {
    let shop = Shop::new().await;
    let faults = shop.world.simulators.faults();
    for (operation, method, path) in [
        ("login", Method::POST, "/collection/token".to_owned()),
        ("login", Method::POST, "/disbursement/token".to_owned()),
        ("initialize", Method::POST, REQUEST.to_owned()),
        ("verify", Method::GET, format!("{REQUEST}/{PAYMENT_ID}")),
        ("refund", Method::POST, REFUND.to_owned()),
        ("refund_status", Method::GET, format!("{REFUND}/{PAYMENT_ID}")),
    ] {
        faults.push(Fault::new(operation, FaultKind::Error500));
        let status = async || shop.request(method.clone(), &path).send().await.unwrap().status();
        assert_eq!(status().await, 500, "{path}");
        assert_ne!(status().await, 500, "{path}");
    }
    faults.push(Fault::new("notification", FaultKind::Cut));
    shop.paid().await;
    assert!(shop.notified().await.is_empty());

    let tamper = async |body: Value| {
        let request = shop.world.request(Method::PUT, "/momo/tamper").json(&body);
        request.send().await.unwrap().status().as_u16()
    };
    assert_eq!(tamper(json!({ "reference": "loan-7", "taken_minor": 49_900 })).await, 204);
    assert_eq!(shop.fetch(REQUEST, PAYMENT_ID).await["amount"], "499");
    let other = json!({ "reference": PAYMENT_ID, "amount_minor": 1_050, "currency": "EUR" });
    assert_eq!(tamper(other).await, 204);
    let seen = shop.fetch(REQUEST, PAYMENT_ID).await;
    assert_eq!((&seen["amount"], &seen["currency"]), (&json!("10.5"), &json!("EUR")));
    assert_eq!(tamper(json!({ "reference": PAYMENT_ID, "reversed": true })).await, 404);
    assert_eq!(tamper(json!({ "reference": OTHER_ID, "taken_minor": 1 })).await, 404);
    let requests = shop.world.simulators.momo().requests();
    assert!(requests.contains(&("POST".to_owned(), REQUEST.to_owned())));
}
