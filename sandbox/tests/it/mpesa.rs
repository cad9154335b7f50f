//! The M-Pesa simulator.

mod commands;
mod faults;
mod phones;
mod pushes;

use base64::{Engine, prelude::BASE64_STANDARD};
use reqwest::Method;
use serde_json::{Value, json};
use tollhouse_sandbox::mpesa::{Answer, Credentials};

use crate::world::World;

const PUSH: &str = "/mpesa/stkpush/v1/processrequest";
const QUERY: &str = "/mpesa/stkpushquery/v1/query";
const PHONE: &str = "254712345678";
const TIMESTAMP: &str = "20261121130000";

/// An app with an access token.
struct Shop {
    world: World,
    token: String,
}

impl Shop {
    async fn new() -> Shop {
        let world = World::new().await;
        let token = token(&world).await;
        Shop { world, token }
    }

    /// Returns status and body.
    async fn call(&self, path: &str, body: Value) -> (u16, Value) {
        let request = self.world.request(Method::POST, &format!("/mpesa{path}"));
        let response = request.bearer_auth(&self.token).json(&body).send().await.unwrap();
        (response.status().as_u16(), response.json().await.unwrap())
    }

    async fn post(&self, path: &str, body: Value) -> Value {
        let (status, body) = self.call(path, body).await;
        assert_eq!((status, &body["ResponseCode"]), (200, &json!("0")), "{body}");
        body
    }

    /// Returns status, code and message of a rejected request.
    async fn rejected(&self, path: &str, body: Value) -> (u16, String, String) {
        let (status, body) = self.call(path, body).await;
        assert!(body["requestId"].is_string(), "{body}");
        let text = |name: &str| body[name].as_str().unwrap().to_owned();
        (status, text("errorCode"), text("errorMessage"))
    }

    /// Requests KES 500 of a payer. Returns the `CheckoutRequestID`.
    async fn push(&self, phone: &str) -> String {
        let body = self.post(PUSH, order(&self.world, phone)).await;
        body["CheckoutRequestID"].as_str().unwrap().to_owned()
    }

    /// Requests KES 500, pays, and returns the receipt.
    async fn paid(&self) -> String {
        let id = self.push(PHONE).await;
        let push = self.world.simulators.mpesa().answer(&id, Answer::Pay).unwrap();
        push.receipt.unwrap()
    }

    async fn query(&self, id: &str) -> (u16, Value) {
        self.call(QUERY, question(id)).await
    }

    /// Returns the callbacks and results received so far, once idle.
    async fn notified(&self) -> Vec<Value> {
        self.world.simulators.run_until_idle().await;
        self.world.receiver.bodies()
    }
}

async fn log_in(world: &World, key: &str, secret: &str, query: &str) -> reqwest::Response {
    let request = world.request(Method::GET, &format!("/mpesa/oauth/v1/generate{query}"));
    request.basic_auth(key, Some(secret)).send().await.unwrap()
}

async fn token(world: &World) -> String {
    let own = Credentials::default();
    let query = "?grant_type=client_credentials";
    let response = log_in(world, &own.consumer_key, &own.consumer_secret, query).await;
    assert_eq!(response.status(), 200);
    let body: Value = response.json().await.unwrap();
    assert_eq!(body["expires_in"], "3599");
    body["access_token"].as_str().unwrap().to_owned()
}

fn password(timestamp: &str) -> String {
    let own = Credentials::default();
    BASE64_STANDARD.encode(format!("{}{}{timestamp}", own.shortcode, own.passkey))
}

fn order(world: &World, phone: &str) -> Value {
    let own = Credentials::default();
    json!({
        "BusinessShortCode": own.shortcode, "Password": password(TIMESTAMP),
        "Timestamp": TIMESTAMP, "TransactionType": "CustomerPayBillOnline", "Amount": 500,
        "PartyA": phone, "PartyB": own.shortcode, "PhoneNumber": phone,
        "CallBackURL": world.receiver.url, "AccountReference": "loan-7",
        "TransactionDesc": "Installment 1",
    })
}

fn question(id: &str) -> Value {
    json!({
        "BusinessShortCode": Credentials::default().shortcode, "Password": password(TIMESTAMP),
        "Timestamp": TIMESTAMP, "CheckoutRequestID": id,
    })
}

#[tokio::test]
async fn tokens_expire_by_the_clock() {
    let shop = Shop::new().await;
    shop.world.advance(3_598).await;
    shop.push(PHONE).await;
    shop.world.advance(1).await;
    let expired = (404, "404.001.03".to_owned(), "Invalid Access Token".to_owned());
    assert_eq!(shop.rejected(PUSH, order(&shop.world, PHONE)).await, expired);
    let token = token(&shop.world).await;
    assert_eq!(Shop { token, ..shop }.query("none").await.0, 500);
}

#[tokio::test]
async fn credentials_and_grant_types_are_checked() {
    let world = World::new().await;
    let own = Credentials::default();
    let query = "?grant_type=client_credentials";
    for (key, secret) in
        [(own.consumer_key.as_str(), "wrong"), ("nobody", own.consumer_secret.as_str())]
    {
        let response = log_in(&world, key, secret, query).await;
        assert_eq!(response.status(), 400, "{key}");
        assert_eq!(response.text().await.unwrap(), "");
    }
    for query in ["", "?grant_type=password"] {
        let response = log_in(&world, &own.consumer_key, &own.consumer_secret, query).await;
        assert_eq!(response.status(), 400, "{query}");
        let body: Value = response.json().await.unwrap();
        assert_eq!(body["errorCode"], "400.008.02");
    }
    let request = world.request(Method::GET, &format!("/mpesa/oauth/v1/generate{query}"));
    let body: Value = request.send().await.unwrap().json().await.unwrap();
    assert_eq!(body["errorCode"], "400.008.01");
    let request = world.request(Method::POST, &format!("/mpesa{PUSH}")).json(&json!({}));
    let body: Value = request.send().await.unwrap().json().await.unwrap();
    assert_eq!(body["errorCode"], "404.001.04");
    let request = world.request(Method::GET, "/mpesa/mpesa/none");
    let body: Value = request.send().await.unwrap().json().await.unwrap();
    assert_eq!(body["errorCode"], "404.003.01");
}

#[tokio::test]
async fn accounts_are_opened_over_http_and_isolated() {
    let shop = Shop::new().await;
    let id = shop.push(PHONE).await;
    let set = async |body: Value| {
        let request = shop.world.request(Method::PUT, "/mpesa/account").json(&body);
        request.send().await.unwrap().status().as_u16()
    };
    assert_eq!(set(json!({ "shortcode": 7 })).await, 400);
    assert_eq!(set(json!({ "password": "x" })).await, 400);
    assert_eq!(set(json!({ "consumer_key": "other", "consumer_secret": "s" })).await, 204);
    let response = log_in(&shop.world, "other", "s", "?grant_type=client_credentials").await;
    let body: Value = response.json().await.unwrap();
    let token = body["access_token"].as_str().unwrap().to_owned();
    let other = Shop { token, ..shop };
    let (status, body) = other.query(&id).await;
    assert_eq!((status, &body["errorMessage"]), (500, &json!("The transaction does not exist")));
    // A phone shows one prompt at a time, of any account.
    let (_, code, message) = other.rejected(PUSH, order(&other.world, PHONE)).await;
    assert_eq!(code, "500.001.1001");
    assert!(message.starts_with("Unable to lock subscriber"), "{message}");
}
