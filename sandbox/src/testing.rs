//! Simulators with a frozen clock for unit tests, called without a network.

use axum::{
    Router,
    body::{Body, to_bytes},
    http::{Method, Request, header::AUTHORIZATION},
};
use serde_json::Value;
use tokio::net::TcpListener;
use tollhouse_platform::clock::{Clock, Timestamp};
use tower::ServiceExt;

use crate::{Simulators, server};

/// A merchant who calls the API of one provider.
pub(crate) struct Caller {
    pub simulators: Simulators,
    clock: Clock,
    router: Router,
    /// The path of the provider.
    base: &'static str,
    /// The value of the header.
    pub authorization: String,
}

impl Caller {
    pub(crate) async fn new(base: &'static str, authorization: &str) -> Caller {
        let clock = Clock::frozen_at(Timestamp::parse("2026-11-21T10:00:00Z").unwrap());
        let bind = async || TcpListener::bind("127.0.0.1:0").await.unwrap();
        let simulators = Simulators::start_seeded(bind().await, bind().await, clock.clone(), 7);
        let router = server::router(simulators.clone());
        Caller { simulators, clock, router, base, authorization: authorization.to_owned() }
    }

    /// Returns status and body. An empty body is null.
    pub(crate) async fn call(&self, method: Method, path: &str, body: Value) -> (u16, Value) {
        self.send(method, &format!("{}{path}", self.base), body).await
    }

    pub(crate) async fn get(&self, path: &str) -> Value {
        let (status, body) = self.call(Method::GET, path, Value::Null).await;
        assert_eq!(status, 200, "{path}: {body}");
        body
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> Value {
        let (status, body) = self.call(Method::POST, path, body).await;
        assert_eq!(status, 200, "{path}: {body}");
        body
    }

    /// Returns the status of a control that has no response body.
    pub(crate) async fn put(&self, path: &str, body: Value) -> u16 {
        self.call(Method::PUT, path, body).await.0
    }

    /// Pays on the page of this URL with the success card.
    pub(crate) async fn pay(&self, page_url: &Value) {
        let id = page_url.as_str().unwrap().rsplit('/').next().unwrap();
        let body = serde_json::json!({ "outcome": "success" });
        let (status, body) =
            self.send(Method::POST, &format!("/checkout/{id}/complete"), body).await;
        assert_eq!(status, 200, "{body}");
    }

    pub(crate) async fn advance(&self, seconds: i64) {
        self.clock.advance_to(self.clock.now().plus_seconds(seconds));
        while self.simulators.run_until_idle().await > 0 {}
    }

    async fn send(&self, method: Method, path: &str, body: Value) -> (u16, Value) {
        let request = Request::builder().method(method).uri(path);
        let request = request.header(AUTHORIZATION, &self.authorization);
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let request = request.body(Body::from(body)).unwrap();
        let response = self.router.clone().oneshot(request).await.unwrap();
        let status = response.status().as_u16();
        let body = to_bytes(response.into_body(), usize::MAX).await.unwrap();
        (status, serde_json::from_slice(&body).unwrap_or_default())
    }
}

/// Returns this field of each row of a list.
pub(crate) fn column(rows: &Value, name: &str) -> Vec<Value> {
    rows.as_array().unwrap().iter().map(|row| row[name].clone()).collect()
}
