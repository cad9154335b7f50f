//! What a payment is called at the provider: the caller's reference when it can be, and never somebody else's payment.

use serde_json::{Value, json};
use tollhouse_sandbox::{Fault, FaultKind};

use crate::app::{PAYSTACK_KEY, TestApp};

/// The paths of the pages on which somebody could pay now, as the stand-ins' front page names them.
pub async fn open_checkouts(app: &TestApp) -> Vec<String> {
    let page = app.client.get(format!("{}/", app.standins.url())).send().await.expect("a page");
    let page = page.text().await.expect("a page");
    let links = page.split("href=\"").filter(|link| link.starts_with("/checkout/"));
    links.filter_map(|link| link.split('"').next()).map(str::to_owned).collect()
}

/// Somebody else's payment of the same amount under the same text, on the same account; where it is paid.
async fn begun_elsewhere(app: &TestApp) -> Value {
    let body = json!({ "email": "eve@example.com", "amount": 250_050, "reference": "order-1" });
    let request =
        app.client.post(format!("{}/paystack/transaction/initialize", app.standins.url()));
    let answer = request.bearer_auth(PAYSTACK_KEY).json(&body).send().await.expect("an answer");
    let answer: Value = answer.json().await.expect("an answer in JSON");
    json!({ "checkout": { "url": answer["data"]["authorization_url"] } })
}

both! {
    async fn a_reference_that_the_provider_knows_from_elsewhere_gets_another_one_there(app: TestApp) {
        begun_elsewhere(app).await;
        let payment = app.initialize("order-1").await;
        assert_eq!(payment["reference"], "order-1");
        assert_ne!(payment["service_ref"], "order-1");
        app.complete(&payment, "success").await;
        app.settle().await;
        assert_eq!(app.fetch("order-1").await["status"], "success");
    }

    async fn a_session_that_was_given_up_counts_when_it_was_paid_all_the_same(app: TestApp) {
        app.standins.faults().push(Fault::new("initialize", FaultKind::CutAfter).times(1));
        assert_eq!(app.post("/payment/initialize", app.order("order-1")).await.failure().0, 502);
        let lost = open_checkouts(app).await;
        let resumed = app.initialize("order-1").await;
        assert_ne!(resumed["service_ref"], "order-1");

        let request = app.client.post(format!("{}{}/complete", app.standins.url(), lost[0]));
        let done = request.json(&json!({ "outcome": "success" })).send().await.expect("an answer");
        assert_eq!(done.status(), 200);
        app.settle().await;
        let payment = app.fetch("order-1").await;
        assert_eq!((&payment["status"], &payment["service_ref"]), (&json!("success"), &json!("order-1")));
        assert_eq!(app.events(), ["payment.success"]);
        app.complete(&resumed, "success").await; // both: the money is there once
        app.settle().await;
        assert_eq!(app.wallet().await["balance"], json!(2362.99));
    }

    async fn a_reference_that_the_provider_cannot_take_is_mapped(app: TestApp) {
        let payment = app.initialize("order_1/ä").await;
        assert_eq!(payment["reference"], "order_1/ä");
        assert_ne!(payment["service_ref"], "order_1/ä");
        app.complete(&payment, "success").await;
        app.settle().await;
        assert_eq!(app.fetch("order_1%2F%C3%A4").await["status"], "success");
    }

    async fn what_somebody_else_paid_under_our_reference_is_not_credited(app: TestApp) {
        let elsewhere = begun_elsewhere(app).await;
        app.standins.faults().push(Fault::new("initialize", FaultKind::Cut).times(1));
        assert_eq!(app.post("/payment/initialize", app.order("order-1")).await.failure().0, 502);
        app.complete(&elsewhere, "success").await;
        app.advance(3600).await;
        let verified = app.post("/payment/verify/order-1", json!({})).await;
        assert_eq!(verified.failure(), (400, "payment still pending"));
        assert_eq!(app.wallet().await["balance"], json!(0));

        let resumed = app.initialize("order-1").await;
        assert_ne!(resumed["service_ref"], "order-1");
        app.complete(&resumed, "success").await;
        app.settle().await;
        assert_eq!(app.fetch("order-1").await["status"], "success");
        assert_eq!(app.wallet().await["balance"], json!(2362.99));
        assert_eq!(app.events(), ["payment.success"]);
    }
}
