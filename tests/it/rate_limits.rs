//! Rate limits of API keys and operators.

use reqwest::Method;
use serde_json::{Value, json};

use crate::app::{Company, Engine, OPERATOR_TOKEN, Reply, TestApp, reply};

/// A host that refills two tokens a second, with a burst of five.
async fn app() -> TestApp {
    let app = TestApp::start_with(Engine::Sqlite, &["--rate-per-s=2", "--rate-burst=5"]).await;
    app.advance(60).await; // refills the tokens that the harness used
    app
}

#[track_caller]
fn check_throttled(response: &Reply) {
    let message = "too many requests, try again in 1 seconds";
    assert_eq!(response.failure(), (429, message));
    assert_eq!(response.headers["retry-after"], "1");
}

/// Number of requests with this key that are served until one is refused.
async fn count_until_throttled(app: &TestApp, company: &Company) -> usize {
    for n in 0..100 {
        let response = app.request(company, Method::GET, "/payment/list", None).await;
        if response.status != 200 {
            check_throttled(&response);
            return n;
        }
    }
    panic!("nothing was refused");
}

#[tokio::test]
async fn a_key_beyond_its_rate_limit_gets_429_and_others_are_served() {
    let app = app().await;
    let made =
        app.operator(Method::POST, &format!("/companies/{}/keys", app.company.id), json!({})).await;
    let second = made.data()["api_key"].as_str().expect("a key").to_owned();
    let second = Company { key: second, ..app.company.clone() };
    assert_eq!(count_until_throttled(&app, &app.company).await, 5);
    assert_eq!(count_until_throttled(&app, &second).await, 5);
    app.advance(1).await;
    assert_eq!(count_until_throttled(&app, &app.company).await, 2);
    let other = app.new_company("Beta Lending").await;
    assert_eq!(count_until_throttled(&app, &other).await, 5);

    // A refused request has no effect, and its response is not stored under its idempotency key.
    app.advance(60).await;
    count_until_throttled(&app, &app.company).await;
    let begin = async || {
        let request = app.client.post(format!("{}/api/v1/payment/initialize", app.api));
        let request = request.bearer_auth(&app.company.key).header("idempotency-key", "k");
        reply(request.json(&app.order("order-1"))).await
    };
    check_throttled(&begin().await);
    app.advance(60).await;
    assert_eq!(app.get("/payment/list").await.data()["total"], 0);
    begin().await.data();
    app.run_until_idle().await;
    app.finish().await;
}

#[tokio::test]
async fn operators_have_a_rate_limit_that_unauthenticated_requests_do_not_use_up() {
    let app = app().await;
    let send = async |token: &str| {
        let request = app.client.get(format!("{}/internal/v1/companies", app.internal));
        reply(request.bearer_auth(token)).await
    };
    for _ in 0..20 {
        assert_eq!(send("op_test_somebody").await.failure().0, 401);
    }
    for _ in 0..5 {
        send(OPERATOR_TOKEN).await.data();
    }
    check_throttled(&send(OPERATOR_TOKEN).await);
    assert_eq!(send("op_test_somebody").await.failure().0, 401);
    assert_eq!(reply(app.client.get(format!("{}/health/live", app.internal))).await.status, 200);
    app.advance(60).await;
    app.operator(Method::GET, "/companies", Value::Null).await.data();
    app.finish().await;
}
