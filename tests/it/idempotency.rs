//! Idempotency keys: a repeated request takes effect once, and its stored response is replayed,
//! also after disconnects, crashes and concurrent requests.

use futures::future::join_all;
use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};
use tokio::{net::TcpListener, sync::watch};
use tollhouse_app::{routes, state::App, wiring};
use tollhouse_http as http;
use tollhouse_http::idempotency;
use tollhouse_platform::{random::Random, store};
use tollhouse_sandbox::{Fault, FaultKind};

use crate::app::{OPERATOR_TOKEN, Reply, TestApp, reply};

const KEY_REUSED: (u16, &str) = (409, "the Idempotency-Key was used with another request");
const IN_PROGRESS: (u16, &str) = (409, "the request with this Idempotency-Key is in progress");

/// Builds a request of the test company to initialize a payment.
fn begin(app: &TestApp, order: &Value) -> RequestBuilder {
    initialize(app, &app.company.key, "", "application/json", order)
}

fn initialize(
    app: &TestApp,
    key: &str,
    query: &str,
    content_type: &str,
    order: &Value,
) -> RequestBuilder {
    let request = app.client.post(format!("{}/api/v1/payment/initialize{query}", app.api));
    request.bearer_auth(key).header("content-type", content_type).body(order.to_string())
}

/// A payment without a reference: each run of the request would create another payment.
fn order_without_reference(app: &TestApp) -> Value {
    let mut order = app.order("");
    order.as_object_mut().expect("an object").remove("reference");
    order
}

fn operator(app: &TestApp, method: Method, path: &str) -> RequestBuilder {
    let request = app.client.request(method, format!("{}/internal/v1{path}", app.internal));
    request.bearer_auth(OPERATOR_TOKEN)
}

async fn with_key(request: RequestBuilder, key: &str) -> Reply {
    reply(request.header("idempotency-key", key)).await
}

fn is_replay(response: &Reply) -> bool {
    response.headers.get("idempotent-replayed").is_some_and(|value| value == "true")
}

/// Asserts that `again` is the stored response of `first`.
#[track_caller]
fn assert_replayed(first: &Reply, again: &Reply) {
    assert!(!is_replay(first) && is_replay(again), "{} {}", first.body, again.body);
    assert_eq!((first.status, &first.body), (again.status, &again.body));
    assert_eq!(first.headers["content-type"], again.headers["content-type"]);
    assert_ne!(first.headers["x-request-id"], again.headers["x-request-id"]);
}

async fn payments(app: &TestApp) -> Value {
    app.get("/payment/list").await.data()["total"].clone()
}

fn own(app: &TestApp, path: &str) -> String {
    format!("/companies/{}{path}", app.company.id)
}

/// Returns the number of API keys of the test company.
async fn keys(app: &TestApp) -> usize {
    let keys = app.operator(Method::GET, &own(app, "/keys"), Value::Null).await;
    keys.data().as_array().expect("a list").len()
}

async fn rows(app: &TestApp) -> Vec<(String, String, Option<String>, Option<String>)> {
    let read = app.app.store.read(async |tx| -> store::Result<_> {
        tx.sql("SELECT id, content, lease, answer FROM idempotency_keys").all().await
    });
    read.await.expect("the rows")
}

/// Simulates a host that crashed before it stored the responses.
async fn delete_responses(app: &TestApp) {
    let until = app.app.clock.now().plus_seconds(150);
    let died = app.app.store.write(async move |tx| -> store::Result<_> {
        tx.sql(
            "UPDATE idempotency_keys
             SET answer = NULL, lease = 'of a host that died', lease_until = $1",
        )
        .bind(until)
        .run()
        .await
    });
    assert_eq!(died.await.expect("a statement"), 1);
}

both! {
    async fn a_repeated_request_runs_once_and_its_response_is_replayed(app: TestApp) {
        let order = order_without_reference(app);
        let first = with_key(begin(app, &order), "a").await;
        first.data();
        for _ in 0..3 {
            assert_replayed(&first, &with_key(begin(app, &order), "a").await);
        }
        assert_eq!(payments(app).await, 1);
        // The stored response does not change with the payment.
        app.complete(first.data(), "success").await;
        app.run_until_idle().await;
        assert_replayed(&first, &with_key(begin(app, &order), "a").await);
        // Without a key, or with another, it is another request.
        reply(begin(app, &order)).await.data();
        with_key(begin(app, &order), "b").await.data();
        assert_eq!(payments(app).await, 3);
        app.run_until_idle().await;
    }

    async fn every_changing_method_accepts_a_key(app: TestApp) {
        let path = own(app, "/keys");
        let made = with_key(operator(app, Method::POST, &path), "k").await;
        assert_replayed(&made, &with_key(operator(app, Method::POST, &path), "k").await);
        assert_eq!(keys(app).await, 2);
        let made = made.data()["id"].as_str().expect("an id").to_owned();
        for (method, path, body) in [
            (Method::PATCH, own(app, ""), json!({ "name": "Acme" })),
            (Method::PUT, own(app, "/subscription"), json!({ "features": ["payments"] })),
            (Method::DELETE, own(app, &format!("/keys/{made}")), Value::Null),
        ] {
            let send = || {
                let request = operator(app, method.clone(), &path);
                if body.is_null() { request } else { request.json(&body) }
            };
            let first = with_key(send(), "k").await;
            assert_replayed(&first, &with_key(send(), "k").await);
        }
        let path = own(app, "/audit");
        let audit = app.operator(Method::GET, &path, Value::Null).await;
        let mut actions: Vec<&str> =
            audit.data()["docs"].as_array().unwrap().iter().map(|e| e["action"].as_str().unwrap()).collect();
        actions.sort_unstable();
        assert_eq!(actions, ["company.create", "company.edit", "company.subscription", "key.create", "key.revoke"]);
    }

    async fn a_key_identifies_one_request_per_company_and_route(app: TestApp) {
        let (order, other) = (app.order("order-1"), app.order("order-2"));
        with_key(begin(app, &order), "k").await.data();
        assert_eq!(with_key(begin(app, &other), "k").await.failure(), KEY_REUSED);
        for (query, content_type) in [("?now", "application/json"), ("", "application/merge+json")] {
            let changed = initialize(app, &app.company.key, query, content_type, &order);
            assert_eq!(with_key(changed, "k").await.failure(), KEY_REUSED);
        }
        assert_eq!(payments(app).await, 1);

        let verify = format!("{}/api/v1/payment/verify/order-1", app.api);
        let elsewhere = with_key(app.client.post(verify).bearer_auth(&app.company.key), "k").await;
        assert!(!is_replay(&elsewhere), "{}", elsewhere.body);
        let b = app.new_company("Beta Lending").await;
        let json = "application/json";
        let of_b = with_key(initialize(app, &b.key, "", json, &order), "k").await;
        assert!(!is_replay(&of_b), "{}", of_b.body);
        // Another API key of the same company is the same principal.
        let second = app.operator(Method::POST, &own(app, "/keys"), json!({})).await;
        let second = second.data()["api_key"].as_str().expect("a key");
        assert!(is_replay(&with_key(initialize(app, second, "", json, &order), "k").await));
        app.run_until_idle().await;
    }

    async fn only_responses_of_requests_with_an_effect_are_stored(app: TestApp) {
        let mut order = app.order("order-1");
        order["amount"] = json!("much");
        assert_eq!(with_key(begin(app, &order), "k").await.failure().0, 400);
        assert!(rows(app).await.is_empty());
        order["amount"] = json!(2500.5);
        app.simulators.faults().push(Fault::new("initialize", FaultKind::Error500));
        assert_eq!(with_key(begin(app, &order), "k").await.failure().0, 502);
        let edit = own(app, "");
        app.operator(Method::PATCH, &edit, json!({ "active": false })).await.data();
        assert_eq!(with_key(begin(app, &order), "k").await.failure().0, 403);
        app.operator(Method::PATCH, &edit, json!({ "active": true })).await.data();
        let [(_, _, lease, response)] = &rows(app).await[..] else { panic!("one row") };
        assert_eq!((lease, response), (&None, &None));
        let done = with_key(begin(app, &order), "k").await;
        assert_eq!(done.data()["reference"], "order-1");
        assert_replayed(&done, &with_key(begin(app, &order), "k").await);
        // A client without access gets no stored response either.
        app.operator(Method::PATCH, &edit, json!({ "active": false })).await.data();
        assert_eq!(with_key(begin(app, &order), "k").await.failure().0, 403);

        let debit = operator(app, Method::POST, &own(app, "/wallet/debit")).json(&json!({ "amount": 5, "key": "d" }));
        let uncovered = with_key(debit.try_clone().expect("a request"), "k").await;
        assert_eq!(uncovered.failure().0, 400);
        let credit = json!({ "amount": 5, "key": "c" });
        app.operator(Method::POST, &own(app, "/wallet/credit"), credit).await.data();
        with_key(debit, "k").await.data();
        app.run_until_idle().await;
    }

    async fn a_run_that_failed_with_a_server_error_is_resumed_by_the_next_one(app: TestApp) {
        let (order, other) = (order_without_reference(app), app.order("order-2"));
        app.simulators.faults().push(Fault::new("initialize", FaultKind::Error500));
        assert_eq!(with_key(begin(app, &order), "k").await.failure().0, 502);
        // It had an effect, so its key cannot be used for another request.
        assert_eq!(with_key(begin(app, &other), "k").await.failure(), KEY_REUSED);
        let done = with_key(begin(app, &order), "k").await;
        assert!(done.data()["checkout"]["url"].is_string() && !is_replay(&done), "{}", done.body);
        assert_eq!(payments(app).await, 1);
        // The same after repeated crashes of its host.
        for _ in 0..2 {
            delete_responses(app).await;
            app.advance(150).await;
            let again = with_key(begin(app, &order), "k").await;
            assert_eq!(again.data()["id"], done.data()["id"]);
        }
        assert_eq!(payments(app).await, 1);
        // After a day, the key has expired.
        app.advance(24 * 3600).await;
        let renewed = with_key(begin(app, &order), "k").await;
        assert_ne!(renewed.data()["id"], done.data()["id"]);
        app.run_until_idle().await;
    }

    async fn a_request_in_progress_is_not_run_concurrently(app: TestApp) {
        let order = order_without_reference(app);
        app.simulators.faults().push(Fault::new("initialize", FaultKind::Slow).delay_ms(1_000));
        let first = with_key(begin(app, &order), "k");
        let meanwhile = async {
            while payments(app).await != 1 {}
            assert_eq!(with_key(begin(app, &order), "k").await.failure(), IN_PROGRESS);
            let other = app.order("order-2");
            assert_eq!(with_key(begin(app, &other), "k").await.failure(), KEY_REUSED);
        };
        let (first, ()) = tokio::join!(first, meanwhile);
        assert_replayed(&first, &with_key(begin(app, &order), "k").await);
        assert_eq!(payments(app).await, 1);
        app.run_until_idle().await;
    }

    async fn two_hosts_run_a_request_once(app: TestApp) {
        let config = crate::app::config(&app.database, &[]);
        let host = App::open(&config, app.app.clock.clone(), Random::system(), None).await;
        let host = host.expect("another host");
        let tcp = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let other = format!("http://{}", tcp.local_addr().expect("bound"));
        let (_close, closing) = watch::channel(false);
        tokio::spawn(async move {
            wiring::listen(&host, http::Listener::plain(tcp), routes::internal_routes(), closing).await;
        });
        for round in 0..5 {
            let path = format!("/internal/v1{}", own(app, "/keys"));
            let key = format!("k{round}");
            let send = |base: &str| {
                let request = app.client.post(format!("{base}{path}")).bearer_auth(OPERATOR_TOKEN);
                with_key(request, &key)
            };
            let responses = join_all((0..8).map(|n| send(if n % 2 == 0 { &app.internal } else { &other }))).await;
            let ran = responses.iter().filter(|response| response.status == 200 && !is_replay(response)).count();
            assert_eq!(ran, 1, "{responses:?}");
            for response in responses.iter().filter(|response| response.status != 200) {
                assert_eq!(response.failure(), IN_PROGRESS);
            }
            assert_eq!(keys(app).await, 2 + round);
            assert!(is_replay(&send(&app.internal).await) && is_replay(&send(&other).await));
        }
    }

    async fn a_client_that_disconnected_gets_the_response_on_retry(app: TestApp) {
        let order = order_without_reference(app);
        app.simulators.faults().push(Fault::new("initialize", FaultKind::Slow).delay_ms(500));
        let begun = async { while payments(app).await != 1 {} };
        tokio::select! {
            _ = with_key(begin(app, &order), "k") => panic!("a response before that of the provider"),
            () = begun => {}
        }
        app.app.tasks.wait_until_idle().await;
        let again = with_key(begin(app, &order), "k").await;
        assert!(is_replay(&again) && again.data()["checkout"]["url"].is_string(), "{}", again.body);
        assert_eq!(payments(app).await, 1);
        app.run_until_idle().await;
    }

    async fn the_key_of_a_crashed_host_is_free_after_its_lease(app: TestApp) {
        let order = app.order("order-1");
        let first = with_key(begin(app, &order), "k").await;
        delete_responses(app).await;
        app.advance(149).await;
        assert_eq!(with_key(begin(app, &order), "k").await.failure(), IN_PROGRESS);
        app.advance(1).await;
        let other = with_key(begin(app, &app.order("order-2")), "k").await;
        assert_eq!(other.failure(), KEY_REUSED);
        let again = with_key(begin(app, &order), "k").await; // finds the payment of the first run
        assert!(!is_replay(&again));
        assert_eq!(again.data()["id"], first.data()["id"]);
        assert!(is_replay(&with_key(begin(app, &order), "k").await));
        assert_eq!(payments(app).await, 1);
        app.run_until_idle().await;
    }

    async fn a_key_expires_after_a_day(app: TestApp) {
        let path = own(app, "/keys");
        let send = || with_key(operator(app, Method::POST, &path), "k");
        let first = send().await;
        app.advance(24 * 3600 - 1).await;
        assert_replayed(&first, &send().await);
        assert_eq!(idempotency::sweep(app.app.server.clone()).await.expect("a sweep"), 0);
        app.advance(1).await;
        assert!(!is_replay(&send().await));
        assert_eq!(keys(app).await, 3);
        app.advance(24 * 3600).await;
        assert_eq!(idempotency::sweep(app.app.server.clone()).await.expect("a sweep"), 1);
        assert!(rows(app).await.is_empty());
    }

    async fn the_row_of_a_key_reveals_nothing_about_its_request(app: TestApp) {
        let order = app.order("order-of-ada");
        let response = with_key(begin(app, &order), "key-of-ada").await;
        response.data();
        with_key(operator(app, Method::POST, &own(app, "/keys")), "key-of-operator").await.data();
        let rows = rows(app).await;
        assert_eq!(rows.len(), 2);
        for (id, content, lease, kept) in rows {
            assert!(id.len() == 64 && id.bytes().all(|b| b.is_ascii_hexdigit()), "{id}");
            assert!(content.starts_with("v1.") && lease.is_none(), "{content} {lease:?}");
            let kept = kept.expect("a response");
            assert!(kept.starts_with("v1."), "{kept}");
            for text in ["order-of-ada", "example", "checkout", "sk_test", "Key created"] {
                assert!(!format!("{content}{kept}").contains(text), "{text} in {content} {kept}");
            }
        }
        app.run_until_idle().await;
    }

    async fn a_malformed_key_is_rejected_and_reads_ignore_keys(app: TestApp) {
        let message = "the Idempotency-Key header must be 1 to 255 visible characters";
        let order = app.order("order-1");
        for key in ["", "two words", "tab\there", &"x".repeat(256)] {
            assert_eq!(with_key(begin(app, &order), key).await.failure(), (400, message), "{key}");
        }
        let twice = begin(app, &order).header("idempotency-key", "a").header("idempotency-key", "b");
        assert_eq!(reply(twice).await.failure(), (400, message));
        assert_eq!(payments(app).await, 0);
        for (base, path, key) in [
            (&app.api, "/api/v1/payment/list", &*app.company.key),
            (&app.internal, "/internal/v1/companies", OPERATOR_TOKEN),
        ] {
            for value in ["", "k", "k"] {
                let read = app.client.get(format!("{base}{path}")).bearer_auth(key);
                let read = with_key(read, value).await;
                assert!(!is_replay(&read) && read.status == 200, "{}", read.body);
            }
        }
        let notification = format!("{}/api/v1/notifications/provider_a/nobody", app.api);
        assert_eq!(with_key(app.client.post(notification).body("{}"), "").await.failure().0, 404);
        let longest = with_key(begin(app, &order), &"x".repeat(255)).await;
        longest.data();
        assert_eq!(rows(app).await.len(), 1);
        app.run_until_idle().await;
    }
}
