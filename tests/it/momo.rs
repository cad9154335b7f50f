//! MTN MoMo beyond the conformance suite: its requests and the reasons of failures.

use reqwest::Method;
use serde_json::{Value, json};
use tollhouse_sandbox::momo::{Answer, Credentials, PaymentRequest};

use crate::{
    app::{Reply, TestApp},
    javascript,
};

const PROMPT: &str = "Approve the payment with your MoMo PIN on your phone.";
const PHONE: &str = "+256772123456";

/// Installs the plugin with an account at the simulator. `None`: it cannot be built here.
async fn set_up(app: &TestApp) -> Option<()> {
    app.install(&javascript::component("momo-js")?).await;
    use_account(app, &Credentials::default().target_environment).await;
    Some(())
}

async fn use_account(app: &TestApp, target_environment: &str) {
    let own = Credentials::default();
    let credentials = json!({
        "api_user": own.api_user, "api_key": own.api_key, "subscription_key": own.subscription_key,
        "disbursement_subscription_key": own.disbursement_subscription_key,
        "target_environment": target_environment,
        "base_url": format!("{}/momo", app.simulators.url()),
    });
    let set = json!({ "credentials": credentials, "active": true });
    app.operator(Method::PUT, "/providers/momo", set).await.data();
}

async fn initialize(app: &TestApp, change: Value) -> Reply {
    let mut order = app.order("order-1");
    order["payment_service"] = json!("momo");
    (order["amount"], order["currency"]) = (json!(2500), json!("UGX"));
    order["phone"] = json!(PHONE);
    for (name, value) in change.as_object().into_iter().flatten() {
        order[name] = value.clone();
    }
    app.post("/payment/initialize", order).await
}

/// Returns the only request to pay.
fn request(app: &TestApp) -> PaymentRequest {
    let mut requests = app.simulators.momo().payments();
    assert_eq!(requests.len(), 1, "{requests:?}");
    requests.remove(0)
}

/// Answers the only request, and waits for the callback.
async fn answer(app: &TestApp, answer: Answer) -> Value {
    let answered = app.simulators.momo().answer(&request(app).reference, answer);
    assert!(answered.is_some(), "the request is open");
    app.run_until_idle().await;
    app.fetch("order-1").await
}

async fn page(app: &TestApp, payment: &Value) -> String {
    let url = payment["checkout"]["url"].as_str().expect("a URL");
    app.client.get(url).send().await.expect("a page").text().await.expect("HTML")
}

both! {
    async fn a_request_names_the_payer_and_the_reference(app: TestApp) {
        let Some(()) = set_up(app).await else { return };
        let payment = initialize(app, json!({})).await.data().clone();
        assert_eq!((&payment["status"], &payment["checkout"]["prompt"]), (&json!("pending"), &json!(PROMPT)));
        let asked = request(app);
        assert_eq!(payment["service_ref"], json!(asked.reference));
        assert_eq!((asked.payer.as_str(), asked.amount, asked.currency.as_str()), ("256772123456", 250_000, "UGX"));
        assert_eq!(asked.external_id, asked.reference);
        let notifications = format!("{}/api/v1/notifications/momo/", app.api);
        assert!(asked.callback_url.is_some_and(|url| url.starts_with(&notifications)));
    }

    async fn a_failed_payment_has_the_reason(app: TestApp) {
        let Some(()) = set_up(app).await else { return };
        let payment = initialize(app, json!({})).await.data().clone();
        let failed = answer(app, Answer::InsufficientFunds).await;
        assert_eq!((&failed["status"], &failed["message"]), (&json!("failed"), &json!("the payer's balance is insufficient")));
        assert!(!page(app, &payment).await.contains(PROMPT));
        assert_eq!(app.events(), ["payment.failed"]);
    }

    async fn an_order_that_momo_cannot_serve_is_rejected(app: TestApp) {
        let Some(()) = set_up(app).await else { return };
        for (change, message) in [
            (json!({ "phone": null }), "the phone field is required"),
            (json!({ "amount": 25.5 }), "the amount field must be a multiple of 1 UGX"),
            (json!({ "currency": "GHS" }), "momo does not support GHS for this account"),
        ] {
            assert_eq!(initialize(app, change).await.failure(), (400, message));
        }
        assert!(app.simulators.momo().payments().is_empty());
        use_account(app, "mtnghana").await;
        assert_eq!(initialize(app, json!({})).await.failure().0, 502);
    }
}
