//! Simulators with a manual clock, a client, and a receiver of webhooks.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicU16, Ordering::SeqCst},
};

use axum::{Router, extract::State, http::HeaderMap, http::StatusCode};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tollhouse_platform::clock::{Clock, Timestamp};
use tollhouse_sandbox::Simulators;

pub const KEY: &str = "sk_test_abc123";
pub const SUCCESS: &str = "4084084084084081";

pub struct World {
    pub simulators: Simulators,
    pub clock: Clock,
    pub client: reqwest::Client,
    pub receiver: Receiver,
}

impl World {
    pub async fn new() -> World {
        let clock = Clock::frozen_at(Timestamp::parse("2026-11-21T10:00:00Z").unwrap());
        let bind = async || TcpListener::bind("127.0.0.1:0").await.unwrap();
        let simulators = Simulators::start_seeded(bind().await, bind().await, clock.clone(), 7);
        let receiver = Receiver::start().await;
        simulators.paystack().set_webhook(KEY, &receiver.url);
        let client = reqwest::Client::builder()
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .build()
            .unwrap();
        World { simulators, clock, client, receiver }
    }

    pub fn request(&self, method: Method, path: &str) -> reqwest::RequestBuilder {
        self.client.request(method, format!("{}{path}", self.simulators.url()))
    }

    /// Calls Paystack's API; returns status and body.
    pub async fn call(&self, method: Method, path: &str, body: Value) -> (u16, Value) {
        let request = self.request(method, &format!("/paystack{path}")).bearer_auth(KEY);
        let request = if body.is_null() { request } else { request.json(&body) };
        let response = request.send().await.unwrap();
        (response.status().as_u16(), response.json().await.unwrap())
    }

    pub async fn get(&self, path: &str) -> Value {
        let (status, body) = self.call(Method::GET, path, Value::Null).await;
        assert_eq!((status, &body["status"]), (200, &json!(true)), "{body}");
        body
    }

    pub async fn post(&self, path: &str, body: Value) -> Value {
        let (status, body) = self.call(Method::POST, path, body).await;
        assert_eq!((status, &body["status"]), (200, &json!(true)), "{body}");
        body
    }

    /// Returns status and `code` of a refused call.
    pub async fn post_rejected(&self, path: &str, body: Value) -> (u16, String) {
        let (status, body) = self.call(Method::POST, path, body).await;
        assert_eq!(body["status"], false, "{body}");
        (status, body["code"].as_str().unwrap().to_owned())
    }

    /// Initializes a payment of NGN 5,000 and returns its access code.
    pub async fn initialize(&self, reference: &str) -> String {
        let body = json!({
            "email": "Ada@Example.com", "amount": 500_000, "reference": reference,
            "callback_url": "https://shop.test/back?x=1",
            "metadata": { "cancel_action": "https://shop.test/cancel" },
        });
        let response = self.post("/transaction/initialize", body).await;
        response["data"]["access_code"].as_str().unwrap().to_owned()
    }

    pub async fn complete(&self, id: &str, body: Value) -> (u16, Value) {
        let path = format!("/checkout/{id}/complete");
        let response = self.request(Method::POST, &path).json(&body).send().await.unwrap();
        (response.status().as_u16(), response.json().await.unwrap())
    }

    /// Pays with this card and returns the verification response.
    pub async fn pay(&self, reference: &str, card: &str) -> Value {
        let id = self.initialize(reference).await;
        let (status, body) =
            self.complete(&id, json!({ "outcome": "success", "card": card })).await;
        assert_eq!(status, 200, "{body}");
        self.verify(reference).await
    }

    pub async fn verify(&self, reference: &str) -> Value {
        self.get(&format!("/transaction/verify/{reference}")).await["data"].clone()
    }

    pub async fn advance(&self, seconds: i64) {
        self.clock.advance_to(self.clock.now().plus_seconds(seconds));
        while self.simulators.run_until_idle().await > 0 {}
    }

    /// Returns the event names of the webhooks received so far, once idle.
    pub async fn notification_events(&self) -> Vec<String> {
        self.simulators.run_until_idle().await;
        self.receiver.bodies().iter().map(|b| b["event"].as_str().unwrap().to_owned()).collect()
    }
}

/// A receiver whose response a test can set.
#[derive(Clone)]
pub struct Receiver {
    pub url: String,
    received: Arc<Mutex<Vec<(HeaderMap, String)>>>,
    status: Arc<AtomicU16>,
}

impl Receiver {
    pub async fn start() -> Receiver {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/hook", listener.local_addr().unwrap());
        let receiver =
            Receiver { url, received: Arc::default(), status: Arc::new(AtomicU16::new(200)) };
        let router = Router::new().fallback(receive).with_state(receiver.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        receiver
    }

    pub fn respond_with(&self, status: u16) {
        self.status.store(status, SeqCst);
    }

    pub fn received(&self) -> Vec<(HeaderMap, String)> {
        self.received.lock().unwrap().clone()
    }

    pub fn bodies(&self) -> Vec<Value> {
        self.received().iter().map(|(_, body)| serde_json::from_str(body).unwrap()).collect()
    }
}

async fn receive(State(receiver): State<Receiver>, headers: HeaderMap, body: String) -> StatusCode {
    receiver.received.lock().unwrap().push((headers, body));
    StatusCode::from_u16(receiver.status.load(SeqCst)).unwrap()
}
