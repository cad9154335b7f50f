//! How often a key may ask.

use reqwest::Method;
use serde_json::{Value, json};

use crate::app::{Company, Engine, OPERATOR_TOKEN, Reply, TestApp, reply};

/// Two tokens a second, five at once.
async fn app() -> TestApp {
    let app = TestApp::start_with(Engine::Sqlite, &["--rate-per-s=2", "--rate-burst=5"]).await;
    app.advance(60).await; // what the harness took has come back
    app
}

#[track_caller]
fn is_throttled(answer: &Reply) {
    let message = "too many requests, try again in 1 seconds";
    assert_eq!(answer.failure(), (429, message));
    assert_eq!(answer.headers["retry-after"], "1");
}

/// How many requests with this key are answered until one is refused.
async fn taken(app: &TestApp, company: &Company) -> usize {
    for n in 0..100 {
        let answer = app.request(company, Method::GET, "/payment/list", None).await;
        if answer.status != 200 {
            is_throttled(&answer);
            return n;
        }
    }
    panic!("nothing was refused");
}

#[tokio::test]
async fn a_key_that_asks_too_often_is_429_and_others_are_answered() {
    let app = app().await;
    let made =
        app.operator(Method::POST, &format!("/companies/{}/keys", app.company.id), json!({})).await;
    let second = made.data()["api_key"].as_str().expect("a key").to_owned();
    let second = Company { key: second, ..app.company.clone() };
    assert_eq!(taken(&app, &app.company).await, 5);
    assert_eq!(taken(&app, &second).await, 5);
    app.advance(1).await;
    assert_eq!(taken(&app, &app.company).await, 2);
    let other = app.new_company("Beta Lending").await;
    assert_eq!(taken(&app, &other).await, 5);

    // What is refused does nothing, and is not kept under its key.
    app.advance(60).await;
    taken(&app, &app.company).await;
    let begin = async || {
        let request = app.client.post(format!("{}/api/v1/payment/initialize", app.api));
        let request = request.bearer_auth(&app.company.key).header("idempotency-key", "k");
        reply(request.json(&app.order("order-1"))).await
    };
    is_throttled(&begin().await);
    app.advance(60).await;
    assert_eq!(app.get("/payment/list").await.data()["total"], 0);
    begin().await.data();
    app.settle().await;
    app.finish().await;
}

#[tokio::test]
async fn operators_are_bounded_and_strangers_take_nothing_from_them() {
    let app = app().await;
    let ask = async |token: &str| {
        let request = app.client.get(format!("{}/internal/v1/companies", app.internal));
        reply(request.bearer_auth(token)).await
    };
    for _ in 0..20 {
        assert_eq!(ask("op_test_somebody").await.failure().0, 401);
    }
    for _ in 0..5 {
        ask(OPERATOR_TOKEN).await.data();
    }
    is_throttled(&ask(OPERATOR_TOKEN).await);
    assert_eq!(ask("op_test_somebody").await.failure().0, 401);
    assert_eq!(reply(app.client.get(format!("{}/health/live", app.internal))).await.status, 200);
    app.advance(60).await;
    app.operator(Method::GET, "/companies", Value::Null).await.data();
    app.finish().await;
}
