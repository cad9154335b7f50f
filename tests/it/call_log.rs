//! The log of plugin calls: on the timeline of a payment, and in numbers by hour.

use reqwest::Method;
use serde_json::{Value, json};
use tollhouse_app::operations::monitor::calls;
use tollhouse_sandbox::{Fault, FaultKind};

use crate::{
    app::TestApp,
    telemetry::{execute_sql, metric_value, scrape},
};

const DAY: i64 = 86_400;
const DROPPED: &str = "tollhouse_call_log_dropped_total";

async fn flush(app: &TestApp) -> usize {
    calls::flush(&app.app).await.expect("saved calls")
}

/// Function and outcome of the calls on the timeline of a payment.
async fn on_timeline(app: &TestApp, payment: &Value) -> Vec<(String, String)> {
    let id = payment["id"].as_str().expect("an id");
    let path = format!("/companies/{}/payments/{id}/timeline", app.company.id);
    let timeline = app.operator(Method::GET, &path, Value::Null).await.data().clone();
    let entries = timeline.as_array().expect("a list").iter();
    let text = |value: &Value| value.as_str().expect("text").to_owned();
    let calls = entries.filter(|entry| entry["kind"] == "call");
    calls.map(|call| (text(&call["action"]), text(&call["outcome"]))).collect()
}

/// The numbers of calls by hour.
async fn by_hour(app: &TestApp, query: &str) -> Vec<Value> {
    let path = format!("/plugin-calls?{query}");
    let found = app.operator(Method::GET, &path, Value::Null).await.data().clone();
    found["hours"].as_array().expect("a list").clone()
}

fn pairs(calls: &[(&str, &str)]) -> Vec<(String, String)> {
    calls.iter().map(|(function, outcome)| ((*function).into(), (*outcome).into())).collect()
}

both! {
    async fn a_timeline_has_the_calls_about_its_payment(app: TestApp) {
        let (payment, other) = (app.initialize("order-1").await, app.initialize("order-2").await);
        app.post("/payment/verify/order-1", json!({})).await;
        app.complete(&payment, "success").await;
        app.run_until_idle().await;
        assert!(flush(app).await > 3);
        assert_eq!(on_timeline(app, &payment).await, pairs(&[
            ("checkout.start", "session"),
            ("verification.verify", "pending"),
            ("verification.verify", "success"),
        ]));
        assert_eq!(on_timeline(app, &other).await, pairs(&[("checkout.start", "session")]));
        let browser = crate::console::Browser::signed_in(app, "ada", "support-read").await;
        let page = format!("/console/companies/{}/payments/{}", app.company.id, payment["id"].as_str().expect("an id"));
        browser.get(&page).await.shows(&["Plugin call verification.verify: pending", "provider_a 1.0.0"]);
    }

    async fn a_payment_that_the_provider_does_not_know_differs_from_an_unpaid_one(app: TestApp) {
        let failed = app.initialize("order-2").await;
        app.complete(&failed, "failed").await;
        app.post("/payment/verify/order-2", json!({})).await;
        app.run_until_idle().await;
        app.simulators.faults().push(Fault::new("initialize", FaultKind::Cut));
        assert_eq!(app.post("/payment/initialize", app.order("order-1")).await.status, 502);
        app.post("/payment/verify/order-1", json!({})).await;
        let lost = app.fetch("order-1").await;
        flush(app).await;
        assert_eq!(on_timeline(app, &lost).await, pairs(&[
            ("checkout.start", "unavailable"),
            ("verification.verify", "not_found"),
        ]));
        assert_eq!(on_timeline(app, &failed).await.last(), pairs(&[("verification.verify", "failed")]).last());
        let browser = crate::console::Browser::signed_in(app, "ada", "support-read").await;
        let page = |payment: &Value| format!("/console/companies/{}/payments/{}", app.company.id, payment["id"].as_str().expect("an id"));
        browser.get(&page(&lost)).await.shows(&["Plugin call verification.verify: not known to the provider", "effect unknown"]);
        browser.get(&page(&failed)).await.shows(&["Plugin call verification.verify: not paid"]);
    }

    async fn numbers_of_all_calls_are_kept_by_hour(app: TestApp) {
        app.initialize("order-1").await;
        flush(app).await;
        app.initialize("order-2").await;
        flush(app).await;
        let hours = by_hour(app, "plugin=provider_a").await;
        assert_eq!(hours.len(), 1, "{hours:?}");
        assert_eq!(
            ["plugin", "calls", "ok", "failed", "unknown"].map(|field| hours[0][field].clone()),
            [json!("provider_a"), json!(2), json!(2), json!(0), json!(0)],
        );
        assert_eq!(by_hour(app, "plugin=provider_b").await, Vec::<Value>::new());
        app.app.clock.advance_to(app.app.clock.now().plus_seconds(3_600));
        app.initialize("order-3").await;
        flush(app).await;
        assert_eq!((by_hour(app, "hours=1").await.len(), by_hour(app, "").await.len()), (1, 2));
        let browser = crate::console::Browser::signed_in(app, "ada", "platform").await;
        app.run_until_idle().await;
        for page in ["/console/today", "/console/plugins/provider_a"] {
            browser.get(page).await.shows(&["Plugin calls by hour (UTC): at most 2 an hour", "2 ok, 0 declined, 0 failed"]);
        }
    }

    async fn calls_are_kept_for_the_days_of_the_setting(app: TestApp, "--call-log-days=2") {
        let payment = app.initialize("order-1").await;
        flush(app).await;
        let kept = async || (on_timeline(app, &payment).await.len(), by_hour(app, "hours=168").await.len());
        app.app.clock.advance_to(app.app.clock.now().plus_seconds(2 * DAY));
        calls::sweep(app.app.clone()).await.expect("a sweep");
        assert_eq!(kept().await, (1, 1));
        app.app.clock.advance_to(app.app.clock.now().plus_seconds(3_600));
        calls::sweep(app.app.clone()).await.expect("a sweep");
        assert_eq!(kept().await, (0, 0));
        app.run_until_idle().await;
    }

    async fn without_retention_calls_are_not_logged(app: TestApp, "--call-log-days=0") {
        app.initialize("order-1").await;
        assert_eq!(flush(app).await, 0);
    }

    async fn a_failed_flush_loses_its_calls_only(app: TestApp) {
        app.initialize("order-1").await;
        execute_sql(app, "ALTER TABLE plugin_calls RENAME TO plugin_calls_away").await;
        calls::flush(&app.app).await.expect_err("no table");
        execute_sql(app, "ALTER TABLE plugin_calls_away RENAME TO plugin_calls").await;
        app.initialize("order-2").await;
        assert_eq!(flush(app).await, 1);
        assert_eq!(metric_value(&scrape(app).await, DROPPED), Some(1.0));
    }
}
