//! Requests to the PostgreSQL server that the main operations make.

use reqwest::Method;
use serde_json::{Value, json};
use tollhouse_platform::background::jobs;
use tollhouse_sandbox::{Fault, FaultKind};

use crate::{
    app::{Engine, TestApp, postgres},
    codes::{credit, email_request, set_prices, use_gateways},
    lending,
    telemetry::metric_value,
};

/// Returns the number of round trips of `work`.
async fn count<T>(app: &TestApp, work: impl Future<Output = T>) -> u64 {
    let sent = || {
        let page = app.app.server.telemetry.scrape();
        metric_value(&page, "tollhouse_store_round_trips_total").expect("a count") as u64
    };
    app.app.tasks.wait_until_idle().await; // of earlier requests
    let before = sent();
    work.await;
    sent() - before
}

/// Each operation with its round trips. The first one authenticates the API key; a fetch has only
/// that one.
const EXPECTED: [(&str, u64); 8] = [
    ("payment initialized", 4),
    ("payment initialized again", 4),
    ("payment fetched", 1),
    ("one-time password sent", 3),
    ("one-time password sent again", 16),
    ("user created", 7),
    ("payment verified as paid", 14),
    // Two, and five for all that are claimed at once.
    ("event delivered", 7),
];

#[tokio::test]
async fn the_main_operations_make_few_round_trips() {
    let Some(server) = postgres() else { return };
    let app = TestApp::start(Engine::Postgres(server)).await;
    use_gateways(&app, &["termii"]).await;
    set_prices(&app).await;
    credit(&app, 10_000, "first").await;
    let (otp, none) = ("/otp/send", json!({}));
    // The first request of a key records its use, and the first code of a slot enqueues a job.
    app.initialize("order-1").await;
    app.post(otp, email_request(none.clone())).await.data();
    app.run_until_idle().await;
    let mut counts = Vec::new();
    let mut add = |name: &'static str, trips: u64| counts.push((name, trips));
    add("payment initialized", count(&app, app.initialize("order-2")).await);
    add("payment initialized again", count(&app, app.initialize("order-2")).await);
    add("payment fetched", count(&app, app.fetch("order-2")).await);
    let other = || app.post(otp, email_request(json!({ "identifier": "other" })));
    add("one-time password sent", count(&app, other()).await);
    add("one-time password sent again", count(&app, other()).await);
    add("user created", count(&app, lending::create_user(&app, "ada")).await);
    app.simulators.faults().push(Fault::new("notification", FaultKind::Cut));
    let page = app.fetch("order-2").await;
    app.complete(&page, "success").await;
    let verified = app.post("/payment/verify/order-2", none);
    add("payment verified as paid", count(&app, verified).await);
    app.run_until_idle().await;
    let events = format!("/companies/{}/events", app.company.id);
    let event = app.operator(Method::GET, &events, Value::Null).await.data()["docs"][0].clone();
    let redeliver = format!("{events}/{}/redeliver", event["id"].as_str().expect("an id"));
    app.operator(Method::POST, &redeliver, Value::Null).await.data();
    let deliver = async {
        jobs::start_due(&app.app).await.expect("a job that starts");
        jobs::wait_until_idle(&app.app).await;
    };
    add("event delivered", count(&app, deliver).await);
    assert_eq!(counts, EXPECTED);
    assert_eq!(app.fetch("order-2").await["status"], "success");
    app.run_until_idle().await;
    app.finish().await;
}

/// The round trips of an installment: its collection, charge, webhook, verifications and event, and
/// the searches for due jobs.
const COLLECTED: u64 = 85;
/// Round trips of further searches. Their number depends on when each job ends.
const SEARCHES: u64 = 12;

#[tokio::test]
async fn a_collected_installment_makes_few_round_trips() {
    let Some(server) = postgres() else { return };
    let app = TestApp::start(Engine::Postgres(server)).await;
    lending::create_user(&app, "ada").await;
    credit(&app, 10_000, "first").await;
    lending::saved_card(&app, "ada", lending::SUCCESS_CARD).await;
    for (id, days) in [("loan-1", 1), ("loan-2", 2)] {
        lending::create_loan(&app, id, "ada", &[(days, 100.0)]).await;
    }
    // The first collection prepares what later ones find.
    app.advance(86_400).await;
    app.run_until_idle().await;
    let collect = async {
        app.advance(86_400).await;
        app.run_until_idle().await;
    };
    let collected = count(&app, collect).await;
    assert!((COLLECTED..=COLLECTED + SEARCHES).contains(&collected), "{collected}");
    assert_eq!(lending::get_loan(&app, "loan-2").await["paid"], true);
    app.finish().await;
}
