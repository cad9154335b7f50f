//! Payments of the interface `sessions` whose payers pay on a page of the provider.

use std::sync::atomic::Ordering;

use futures::future::join_all;
use reqwest::Method;
use serde_json::{Value, json};

use crate::{
    app::{Reply, TestApp, reply},
    sprout::{SproutUpstream, TOKEN, repack},
};

/// The manifest's `sessions.expires_s`, and the maximum duration of a call.
const OPEN_S: i64 = 600 + 30;

/// Installs Sapling, whose payments are found by this.
async fn install(app: &TestApp, lookup: &str) -> SproutUpstream {
    let upstream = SproutUpstream::start().await;
    let component = repack(artifacts::SAPLING, |manifest| {
        manifest["sessions"]["lookup"] = json!(lookup);
    });
    app.install(&component).await;
    let set = json!({ "credentials": { "token": TOKEN, "base_url": upstream.url } });
    let account = app.operator(Method::PUT, "/providers/sapling", set).await;
    assert_eq!(account.status, 200, "{}", account.body);
    upstream
}

async fn initialize(app: &TestApp) -> Reply {
    let mut order = app.order("order-1");
    order["payment_service"] = json!("sapling");
    app.post("/payment/initialize", order).await
}

/// Returns all references at the provider.
fn references(upstream: &SproutUpstream) -> Vec<String> {
    upstream.sessions.lock().expect("no panic").keys().cloned().collect()
}

/// Sets the status of a session, and notifies the URL in its request.
async fn pay(app: &TestApp, upstream: &SproutUpstream, reference: &str) -> Reply {
    upstream.set_status(reference, "paid");
    let session = upstream.sessions.lock().expect("no panic")[reference].clone();
    let url = session["notify"].as_str().expect("a notification URL");
    let notified = reply(app.client.post(url).json(&json!({ "id": reference }))).await;
    app.run_until_idle().await;
    notified
}

both! {
    async fn the_payer_pays_on_the_page_of_the_provider(app: TestApp) {
        let upstream = install(app, "state").await;
        let begun = initialize(app).await;
        let [reference] = &references(&upstream)[..] else { panic!("one session") };
        let checkout = &begun.data()["checkout"];
        assert_eq!(checkout["url"], format!("{}/pay/{reference}", upstream.url));
        assert_eq!(checkout["prompt"], Value::Null);
        // A repeated request returns the same page.
        assert_eq!(initialize(app).await.data()["checkout"]["url"], checkout["url"]);
        assert_eq!(pay(app, &upstream, reference).await.status, 200);
        assert_eq!(app.fetch("order-1").await["status"], "success");
        assert_eq!(app.events(), ["payment.success"]);
    }

    async fn a_page_without_a_notification_is_verified_by_its_state(app: TestApp) {
        let upstream = install(app, "state").await;
        initialize(app).await;
        upstream.set_status(&references(&upstream)[0], "paid");
        let verified = app.post("/payment/verify/order-1", json!({})).await;
        assert_eq!(verified.data()["status"], "success");
        app.run_until_idle().await;
    }

    async fn concurrent_notifications_do_not_replace_each_other(app: TestApp) {
        let upstream = install(app, "state").await;
        initialize(app).await;
        let reference = references(&upstream).remove(0);
        upstream.set_status(&reference, "paid");
        let session = upstream.sessions.lock().expect("no panic")[&reference].clone();
        let url = session["notify"].as_str().expect("a notification URL");
        let notify = async |n: usize| {
            let body = json!({ "id": reference, "n": n });
            reply(app.client.post(url).json(&body)).await.status.as_u16()
        };
        let statuses = join_all((0..8).map(notify)).await;
        assert!(statuses.iter().all(|status| [200, 503].contains(status)), "{statuses:?}");
        let accepted = statuses.iter().filter(|status| **status == 200).count();
        assert!(accepted > 0, "{statuses:?}");
        app.run_until_idle().await;
        // The plugin counts the notifications in the data that it returns.
        let expected = json!({ "notifications": accepted }).to_string();
        assert_eq!(app.fetch("order-1").await["payment_response"], expected);
    }

    async fn a_lost_page_that_its_reference_identifies_is_replaced_at_once(app: TestApp) {
        let upstream = install(app, "reference").await;
        upstream.loses_response.store(true, Ordering::Relaxed);
        assert_eq!(initialize(app).await.status, 502);
        let begun = initialize(app).await;
        let pages = references(&upstream);
        let url = begun.data()["checkout"]["url"].as_str().expect("a page");
        let shown = url.rsplit('/').next().expect("a reference").to_owned();
        assert!(pages.contains(&shown), "{pages:?}");
        pay(app, &upstream, &shown).await;
        assert_eq!(app.fetch("order-1").await["status"], "success");
    }

    async fn a_lost_page_that_only_its_state_identifies_is_replaced_after_its_expiry(app: TestApp) {
        let upstream = install(app, "state").await;
        upstream.loses_response.store(true, Ordering::Relaxed);
        assert_eq!(initialize(app).await.status, 502);
        app.advance(61).await;
        assert_eq!(initialize(app).await.status, 409);
        assert_eq!(references(&upstream).len(), 1);
        app.advance(OPEN_S).await;
        assert_eq!(initialize(app).await.status, 200);
        let pages = references(&upstream);
        assert_eq!(pages.len(), 2);
        // The first page can still be paid.
        for page in &pages {
            pay(app, &upstream, page).await;
        }
        assert_eq!(app.fetch("order-1").await["status"], "success");
        assert_eq!(app.events(), ["payment.success"]);
    }
}
